/**
 * @module
 * What a failure says of itself, in English. `describe` says more: `texts-en.ts`.
 */

import type { Texts } from './texts.ts';

const OTHER_SOURCE = 'Use another tool or source for the same information, if there is one.';
const GO_ON = 'Go on with the parts of the task that do not need this tool.';

/** By code, without what only `describe` says. */
export const codes: Texts['codes'] = {
  CONNECTION_REFUSED: {
    what: 'The connection was refused.',
    suggestion:
      'The service is probably down or restarting. If it refuses again, tell the user that it is not running.',
    fallback: OTHER_SOURCE,
  },
  CONNECTION_RESET: {
    what: 'The connection was lost before the answer was complete.',
    suggestion: 'If the call changes anything, check whether it took effect before you repeat it.',
    fallback: OTHER_SOURCE,
  },
  CONNECT_TIMEOUT: {
    what: 'No connection could be made in time.',
    suggestion: 'If it happens again, tell the user that the service does not accept connections.',
    fallback: OTHER_SOURCE,
  },
  DNS_FAILURE: {
    what: 'The host name could not be resolved.',
    suggestion:
      'If you chose the host name, check its spelling; otherwise tell the user that name resolution fails.',
    fallback: OTHER_SOURCE,
  },
  HOST_UNREACHABLE: {
    what: 'There is no route to the host.',
    suggestion: 'Tell the user that there is no network route to the service.',
    fallback: OTHER_SOURCE,
  },
  TLS_FAILURE: {
    what: 'No secure connection could be made.',
    suggestion:
      'Tell the user that the certificate or TLS setup of the service must be repaired; you cannot repair it by calling again.',
    fallback: OTHER_SOURCE,
  },
  NETWORK_ERROR: {
    what: 'The network failed during the call.',
    suggestion: 'If the call changes anything, check whether it took effect before you repeat it.',
    fallback: OTHER_SOURCE,
  },
  UPSTREAM_TIMEOUT: {
    what: 'The upstream did not answer in time.',
    suggestion: 'Ask for less at once: a smaller range, fewer items, a narrower query.',
    fallback: OTHER_SOURCE,
  },
  UPSTREAM_UNAVAILABLE: {
    what: 'The upstream is not available at the moment.',
    suggestion: 'If it is still not available then, tell the user and go on without it.',
    fallback: OTHER_SOURCE,
  },
  UPSTREAM_ERROR: {
    what: 'The upstream failed while it worked on the request.',
    suggestion: 'If it fails again, try simpler arguments or tell the user about the fault.',
    fallback: OTHER_SOURCE,
  },
  UPSTREAM_INVALID_RESPONSE: {
    what: "The upstream's answer could not be read.",
    suggestion:
      'If the call changes anything, check whether it took effect; the answer was damaged, not missing.',
    fallback: OTHER_SOURCE,
  },
  RATE_LIMITED: {
    what: 'The upstream refused the request because too many were made.',
    suggestion: 'Make fewer calls: combine them, or ask only for what is needed.',
    fallback: GO_ON,
  },
  AUTH_FAILED: {
    what: 'The upstream refused the credentials or the permissions.',
    suggestion:
      'Tell the user that access is missing or has expired. Do not ask for passwords or keys in the conversation.',
  },
  NOT_FOUND: {
    what: 'What was asked for does not exist.',
    suggestion: 'Check the name or id, or list what exists, then call with the right one.',
  },
  REQUEST_REJECTED: {
    what: 'The upstream rejected the request.',
    suggestion: 'Read the reason, change the arguments accordingly, then call again.',
  },
  METHOD_NOT_FOUND: {
    what: 'The upstream does not know this method.',
    suggestion: 'List the available tools and use one of those.',
  },
  TOOL_ERROR: {
    what: 'The tool ran and reported an error.',
    suggestion: 'Read what the tool says and change the arguments, or choose another way.',
  },
  OUTCOME_UNKNOWN: {
    what: 'The connection was lost after the request was sent, so that its outcome is unknown.',
    suggestion:
      'Read the current state with another call. Repeat the operation only if it did not take effect.',
  },
  CIRCUIT_OPEN: {
    what: 'Calls to this dependency are paused, because recent ones failed.',
    suggestion: 'Do not call it in the meantime: calls are refused without being sent.',
    fallback: OTHER_SOURCE,
  },
  RATE_LIMIT_EXCEEDED: {
    what: 'Our own limit of calls to this dependency is used up; nothing was sent.',
    suggestion: 'Make fewer calls: combine them, or ask only for what is needed.',
    fallback: GO_ON,
  },
  BULKHEAD_FULL: {
    what: 'Too many calls to this dependency are running; this one was not sent.',
    suggestion: 'Wait for your other calls to finish, and run fewer at the same time.',
    fallback: GO_ON,
  },
  TIMEOUT: {
    what: 'The call took longer than it may.',
    suggestion: 'Ask for less at once: a smaller range, fewer items, a narrower query.',
    fallback: OTHER_SOURCE,
  },
  DEADLINE_EXCEEDED: {
    what: 'The time for the whole call, with everything in it, has run out.',
    suggestion: 'Split the work into smaller calls, or tell the user that it takes too long.',
    fallback: OTHER_SOURCE,
  },
  CANCELLED: {
    what: 'The call was cancelled by its caller.',
    suggestion: 'Ask the user how to go on.',
  },
  INVALID_INPUT: {
    what: 'The arguments are not valid.',
    suggestion: 'Compare the arguments with the input schema of the tool.',
  },
  INTERNAL_ERROR: {
    what: 'The tool has a defect.',
    suggestion: 'Tell the user that this tool is broken and must be repaired by its author.',
    fallback: OTHER_SOURCE,
  },
  UNKNOWN_ERROR: {
    what: 'The call failed for a reason that is not known.',
    suggestion: 'If it fails again, tell the user what the message says.',
    fallback: OTHER_SOURCE,
  },
};
