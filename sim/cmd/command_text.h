/* SPDX-License-Identifier: Apache-2.0
 *
 * A command line as text, for files that say how they were made.
 */
#ifndef SIM_CMD_COMMAND_TEXT_H
#define SIM_CMD_COMMAND_TEXT_H

/* "wavetank sim TRACE --model M", quoted where a POSIX shell needs that; to be freed. Parsing
 * reorders argv: ask before. */
char *command_text(int argc, char *const *argv);

#endif
