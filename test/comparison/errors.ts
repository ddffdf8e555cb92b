/**
 * @module
 * Errors as the real world throws them, the same ones for every library.
 */

/** The connection broke: infrastructure, passes by itself. */
export const reset = (): Error =>
  Object.assign(new Error('read ECONNRESET'), { code: 'ECONNRESET', syscall: 'read' });

/** An HTTP status, with `Retry-After` in seconds if given. */
export const status = (code: number, retryAfter?: number): Error =>
  Object.assign(new Error(`HTTP ${code}`), {
    status: code,
    headers: retryAfter === undefined ? {} : { 'retry-after': String(retryAfter) },
  });

/** JSON-RPC "invalid params". */
export const invalidParams = (): Error =>
  Object.assign(new Error('MCP error -32602: Invalid params'), { code: -32602 });

const field = (error: unknown, name: string): unknown =>
  typeof error === 'object' && error !== null
    ? (error as Record<string, unknown>)[name]
    : undefined;

/**
 * What users of a library without a classification of its own write into its error filter:
 * faults of the caller and of the program are no failures of the dependency.
 */
export const callersFault = (error: unknown): boolean => {
  const code = field(error, 'status');
  return (
    (typeof code === 'number' && code >= 400 && code < 500 && code !== 429) ||
    field(error, 'code') === -32602 ||
    error instanceof TypeError
  );
};

/** Milliseconds that a 429 asks to wait; 0 if it does not. */
export const retryAfterOf = (error: unknown): number =>
  Number(field(field(error, 'headers'), 'retry-after') ?? 0) * 1_000;

/** Seconds that a refusal tells its caller to wait, in the fields that the libraries have for it. */
export const waitTold = (error: unknown): number | undefined => {
  const seconds = field(field(error, 'failure'), 'retryAfter');
  if (typeof seconds === 'number') return seconds;
  const remaining = field(error, 'remainingTimeInRatelimit');
  return typeof remaining === 'number' ? remaining / 1_000 : undefined;
};

/** An error in a few characters: its code, or what it says. */
export const brief = (error: unknown): string => {
  if (error instanceof DOMException) return error.name;
  const code = field(error, 'code');
  if (typeof code === 'string' || typeof code === 'number') return String(code);
  if (error instanceof Error) return `"${error.message}"`;
  return String(error);
};
