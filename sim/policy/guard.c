/* SPDX-License-Identifier: Apache-2.0 */
/* sigaltstack and SA_ONSTACK: a stack that overflows must be told, too. */
#define _XOPEN_SOURCE 700 /* NOLINT(bugprone-reserved-identifier) */

#include "sim/policy/guard.h"

#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "sim/base/file.h"

static struct {
    const char *policy, *callback;
    int64_t step;
    volatile sig_atomic_t inside;
    volatile sig_atomic_t ticks; /* seconds begun within this call */
} call;

static const struct {
    int signal;
    const char *what;
} crash[] = {
    {SIGSEGV, "invalid memory access"},
    {SIGBUS, "invalid memory access"},
    {SIGFPE, "arithmetic fault"},
    {SIGILL, "illegal instruction"},
    {SIGABRT, "abort"},
};

static size_t append(char *text, size_t at, const char *more)
{
    while (*more != '\0')
        text[at++] = *more++;
    return at;
}

static size_t append_number(char *text, size_t at, int64_t n)
{
    char digit[20];
    int len = 0;
    do
        digit[len++] = (char)('0' + n % 10);
    while ((n /= 10) > 0);
    while (len > 0)
        text[at++] = digit[--len];
    return at;
}

/* Async-signal-safe, so without stdio. */
static void end_run(const char *what)
{
    enum { ROOM = 512, NAME_MAX_BYTES = 300 };
    char text[ROOM];
    size_t at = append(text, 0, "wavetank: policy ");
    size_t len = strlen(call.policy);
    len = len < NAME_MAX_BYTES ? len : NAME_MAX_BYTES;
    memcpy(text + at, call.policy, len);
    at = append(text, at + len, ": ");
    at = append(text, at, what);
    at = append(text, at, " in ");
    at = append(text, at, call.callback);
    if (call.step >= 0) {
        at = append(text, at, " (step ");
        at = append_number(text, at, call.step);
        at = append(text, at, ")");
    }
    at = append(text, at, "\n");
    outfile_abort_all();
    (void)!write(STDERR_FILENO, text, at);
    _exit(1);
}

static void on_crash(int signal)
{
    for (size_t i = 0; call.inside && i < sizeof crash / sizeof *crash; i++)
        if (crash[i].signal == signal)
            end_run(crash[i].what);
    struct sigaction ours = {.sa_handler = SIG_DFL};
    sigaction(signal, &ours, NULL);
    raise(signal);
}

static void on_tick(int signal)
{
    (void)signal;
    if (call.inside && ++call.ticks > GUARD_LIMIT_S)
        end_run("no answer within 5 s");
    alarm(1);
}

static void on_exit_inside(void)
{
    if (call.inside)
        end_run("exit");
}

static void install(void)
{
    static char stack[64 << 10];
    stack_t alternate = {.ss_sp = stack, .ss_size = sizeof stack};
    struct sigaction action = {.sa_handler = on_crash, .sa_flags = SA_ONSTACK};
    sigaltstack(&alternate, NULL);
    for (size_t i = 0; i < sizeof crash / sizeof *crash; i++)
        sigaction(crash[i].signal, &action, NULL);
    action = (struct sigaction){.sa_handler = on_tick, .sa_flags = SA_ONSTACK | SA_RESTART};
    sigaction(SIGALRM, &action, NULL);
    atexit(on_exit_inside);
    alarm(1);
}

void guard_enter(const char *policy, const char *callback, int64_t step)
{
    static bool installed;
    if (!installed)
        install();
    installed = true;
    call.policy = policy;
    call.callback = callback;
    call.step = step;
    call.ticks = 0;
    call.inside = 1;
}

void guard_leave(void)
{
    call.inside = 0;
}
