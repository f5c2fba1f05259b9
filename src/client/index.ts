/** What speaks to the API from outside: the command line and agents share it. */
export { Client, type ClientOptions, type Document } from './client.js';
export { ExitCode, exitCodeOf, ServiceError } from './errors.js';
export { asked, pauseMs, sleep, untilDone } from './retry.js';
