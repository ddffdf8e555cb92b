/**
 * @module
 * The flags that say where something is served: the same for each command that serves.
 */
import { type Command, Option } from 'commander';
import { flag, given, portNumber, refuse, say } from './command-line.ts';

/** What they come to. */
export interface DoorFlags {
  readonly http?: boolean;
  readonly stdio?: boolean;
  readonly host: string;
  readonly port: number;
  readonly chaos?: boolean;
}

/** Adds them to a command, and `more` options before the last. */
export const addDoorFlags = (command: Command, ...more: readonly Option[]): Command => {
  const host = new Option('--host <address>', 'address to listen on, with --http')
    .env('MCP_RESILIENCE_HOST')
    .default('127.0.0.1')
    .argParser(given('an address or a name of this machine'));
  const port = new Option('--port <number>', 'port to listen on, with --http')
    .env('MCP_RESILIENCE_PORT')
    .default(3000)
    .argParser(portNumber);
  const options = [host, port, ...more];
  // As with OTEL_*: a variable that is set to nothing counts as unset.
  for (const { envVar } of options) {
    if (envVar !== undefined && process.env[envVar]?.trim() === '') delete process.env[envVar];
  }
  command
    .option('--stdio', 'serve one client on stdin and stdout (the default)')
    .option('--http', 'serve clients over Streamable HTTP (or MCP_RESILIENCE_HTTP=1)');
  for (const option of options) command.addOption(option);
  return command.option(
    '--chaos',
    'let clients inject faults into calls, to try things out (or MCP_CHAOS=1)',
  );
};

/** Whether it is HTTP; refuses flags that exclude each other. */
export const servesHttp = (flags: DoorFlags, command: Command): boolean => {
  if (flags.http && flags.stdio) {
    refuse('--http and --stdio exclude each other; give one of them');
  }
  // What the command line says wins over the environment.
  const http = flags.http ?? (flags.stdio ? false : flag('MCP_RESILIENCE_HTTP'));
  for (const name of ['host', 'port']) {
    // Who asks for a port and gets stdio would wait for a server that never answers.
    if (!http && command.getOptionValueSource(name) === 'cli') {
      refuse(`--${name} says where HTTP is served; give --http too`);
    }
  }
  if (!http && !flags.stdio && process.stdin.isTTY) {
    say('waiting for an MCP client on stdin; for people there is --http, and --help');
  }
  return http;
};
