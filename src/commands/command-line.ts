/**
 * @module
 * What all commands share: how they speak, refuse, read their arguments, and end.
 * Exit codes: 0 for an orderly end, 1 when it could not do its work or broke, 2 when it was
 * called wrongly.
 */
import { constants } from 'node:os';
import { InvalidArgumentError } from 'commander';

export const USAGE_ERROR = 2;

/** Tells a person something: on stderr, since stdout may be a client's. */
export const say = (line: string): void => console.error(line);

/** Ends the command because it was called wrongly. */
export const refuse = (problem: string): never => {
  say(`error: ${problem}\n(see mcp-resilience --help)`);
  process.exit(USAGE_ERROR);
};

/** Reads a port from the command line. */
export const portNumber = (text: string): number => {
  const port = Number(text);
  if (!/^\d+$/.test(text) || port > 65_535) {
    throw new InvalidArgumentError(
      'It must be a whole number from 0 to 65535; 0 takes a free one.',
    );
  }
  return port;
};

/** Reads a text that must not be empty. */
export const given =
  (what: string) =>
  (text: string): string => {
    // An empty host would be taken for every address of the machine.
    if (text.trim() === '') throw new InvalidArgumentError(`It must be ${what}.`);
    return text.trim();
  };

/** An on/off variable: the twin of a flag that takes no value. */
export const flag = (name: string): boolean => {
  const text = process.env[name]?.trim().toLowerCase() ?? '';
  if (['', '0', 'false', 'no', 'off'].includes(text)) return false;
  if (['1', 'true', 'yes', 'on'].includes(text)) return true;
  return refuse(`${name} must be 1 or 0, got "${text}"`);
};

/** Says why something could not be served at an address. */
export const explainListen = (error: unknown, host: string, port: number): string => {
  const { code, message } = error as NodeJS.ErrnoException;
  if (code === 'EADDRINUSE') {
    return `port ${port} of ${host} is in use; give another with --port or MCP_RESILIENCE_PORT`;
  }
  if (code === 'EACCES') return `port ${port} may not be used; give one above 1023 with --port`;
  if (code === 'EADDRNOTAVAIL' || code === 'ENOTFOUND' || code === 'EAI_AGAIN') {
    return `${host} is no address of this machine; give one with --host or MCP_RESILIENCE_HOST`;
  }
  return message ?? String(error);
};

/** Something that serves until it ends by itself or is told to. */
export interface Running {
  /** Resolves when it has ended by itself. */
  readonly ended: Promise<void>;
  /** Takes nothing new, lets running calls finish. Never rejects. */
  close(): Promise<void>;
}

/** Lets it run until it ends, a signal comes, or something broke; then ends the process. */
export const runUntilTheEnd = (served: Running): void => {
  let ending = false;
  let exitCode = 0;
  const end = async (code: number): Promise<void> => {
    exitCode ||= code;
    if (ending) return;
    ending = true;
    await served.close();
    process.exit(exitCode);
  };
  for (const signal of ['SIGTERM', 'SIGINT', 'SIGHUP'] as const) {
    process.on(signal, () => {
      // Asked twice: whoever asks does not want to wait for running calls.
      if (ending) process.exit(128 + constants.signals[signal]);
      void end(0);
      say('ending: running calls may finish; a second signal ends it at once');
    });
  }
  const broke = (error: unknown): void => {
    say(`error: ${error instanceof Error ? (error.stack ?? error.message) : String(error)}`);
    void end(1);
  };
  process.on('uncaughtException', broke);
  process.on('unhandledRejection', broke);
  void served.ended.then(() => end(0));
};
