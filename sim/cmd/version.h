/* SPDX-License-Identifier: Apache-2.0
 *
 * The version that --version prints and every JSON result carries.
 */
#ifndef SIM_CMD_VERSION_H
#define SIM_CMD_VERSION_H

#define WAVETANK_VERSION "0.1.0"

#endif
