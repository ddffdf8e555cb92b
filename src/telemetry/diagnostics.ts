/**
 * @module
 * Where OpenTelemetry's own complaints go: to stderr, one line each, and not over and over.
 * Never to stdout, which a stdio MCP server needs for JSON-RPC.
 */
import { format } from 'node:util';
import { type DiagLogFunction, type DiagLogger, DiagLogLevel } from '@opentelemetry/api';

/** Once said, the same complaint is not repeated for this long, in ms. */
const QUIET_PERIOD = 60_000;
/** Kinds of complaint remembered; beyond that the memory starts afresh. */
const MAX_KINDS = 100;
/** Longest line, in characters: debug output holds whole batches. */
const MAX_LINE = 2_000;

/** OTEL_LOG_LEVEL as a level; errors only if it is unset or not understood. */
export const diagLevel = (name: string | undefined): DiagLogLevel => {
  // The enum also maps its numbers back to names.
  const level: unknown = Reflect.get(DiagLogLevel, name?.trim().toUpperCase() ?? '');
  return typeof level === 'number' ? level : DiagLogLevel.ERROR;
};

/**
 * The SDK reports a failed export as the JSON of a flattened error with its stack; the name
 * and the message, or in its place the code, are what a reader needs.
 */
const shorten = (text: string): string => {
  if (!text.startsWith('{')) return text;
  try {
    const { name = 'Error', message, code } = JSON.parse(text) as Record<string, unknown>;
    const said = message ?? code;
    return said === undefined ? text : `${name}: ${said}`;
  } catch {
    return text;
  }
};

/**
 * A logger for `diag.setLogger`. The same error or warning, numbers aside, is written at most
 * once a minute, with the count of those left out; a dead collector costs one line a minute.
 * Lower levels are written whole: somebody asked for them.
 *
 * @param write takes a finished line, without its newline
 * @param now a clock in ms
 */
export const createDiagLogger = (
  write: (line: string) => void,
  now: () => number = () => performance.now(),
): DiagLogger => {
  const said = new Map<string, { at: number; withheld: number }>();

  const line = (level: string, args: Parameters<DiagLogFunction>, note = ''): void => {
    const [message, ...rest] = args;
    const text = format(shorten(String(message)), ...rest).slice(0, MAX_LINE);
    write(`mcp-resilience: telemetry ${level}: ${text}${note}`);
  };

  const limited =
    (level: string): DiagLogFunction =>
    (...args) => {
      const kind = level + shorten(String(args[0])).replace(/\d+/g, '#');
      const before = said.get(kind);
      if (before && now() - before.at < QUIET_PERIOD) {
        before.withheld++;
        return;
      }
      if (said.size >= MAX_KINDS) said.clear();
      said.set(kind, { at: now(), withheld: 0 });
      line(level, args, before?.withheld ? ` (and ${before.withheld} like it)` : '');
    };

  const whole =
    (level: string): DiagLogFunction =>
    (...args) =>
      line(level, args);

  return {
    error: limited('error'),
    warn: limited('warning'),
    info: whole('info'),
    debug: whole('debug'),
    verbose: whole('verbose'),
  };
};
