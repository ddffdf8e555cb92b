#!/usr/bin/env node
/**
 * @module
 * The command: reads argv and the environment, starts one of the ways in, owns exit codes.
 * 0 for an orderly end, 1 when it could not serve or broke, 2 when it was called wrongly.
 */
import { constants } from 'node:os';
import { Command, InvalidArgumentError, Option } from 'commander';
import { guardStdout } from './telemetry/stdout-guard.ts';
import { VERSION } from './version.ts';

const USAGE_ERROR = 2;

const say = (line: string): void => console.error(line);

const refuse = (problem: string): never => {
  say(`error: ${problem}\n(see mcp-resilience --help)`);
  process.exit(USAGE_ERROR);
};

const portNumber = (text: string): number => {
  const port = Number(text);
  if (!/^\d+$/.test(text) || port > 65_535) {
    throw new InvalidArgumentError(
      'It must be a whole number from 0 to 65535; 0 takes a free one.',
    );
  }
  return port;
};

const given =
  (what: string) =>
  (text: string): string => {
    // An empty host would be taken for every address of the machine.
    if (text.trim() === '') throw new InvalidArgumentError(`It must be ${what}.`);
    return text.trim();
  };

/** An on/off variable: the twin of a flag that takes no value. */
const flag = (name: string): boolean => {
  const text = process.env[name]?.trim().toLowerCase() ?? '';
  if (['', '0', 'false', 'no', 'off'].includes(text)) return false;
  if (['1', 'true', 'yes', 'on'].includes(text)) return true;
  return refuse(`${name} must be 1 or 0, got "${text}"`);
};

interface Flags {
  readonly http?: boolean;
  readonly stdio?: boolean;
  readonly host: string;
  readonly port: number;
  readonly config?: string;
}

const serve = async (flags: Flags, command: Command): Promise<void> => {
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
  // Before anything is loaded that might print.
  const stdout = http ? process.stdout : guardStdout();
  const [{ serve: start }, { ConfigError }] = await Promise.all([
    import('./serve.ts'),
    import('./config.ts'),
  ]);
  try {
    const served = await start({
      transport: http ? 'http' : 'stdio',
      host: flags.host,
      port: flags.port,
      ...(flags.config !== undefined && { configFile: flags.config }),
      env: process.env,
      stdout,
      say,
    });
    runUntilTheEnd(served);
  } catch (error) {
    say(`error: ${explain(error, flags)}`);
    process.exit(error instanceof ConfigError ? USAGE_ERROR : 1);
  }
};

const explain = (error: unknown, { host, port }: Flags): string => {
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

const runUntilTheEnd = (served: { ended: Promise<void>; close(): Promise<void> }): void => {
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

const ENVIRONMENT = `
Environment:
  OTEL_EXPORTER_OTLP_ENDPOINT  where telemetry goes, such as http://localhost:4318; all of OTEL_* holds
  MCP_RESILIENCE_LANG          language of failure texts: en (the default) or zh
  WEATHER_API_URL              base of the weather API (https://wttr.in)
  SEARCH_API_URL               base of the search API (https://en.wikipedia.org)`;

const HOST = new Option('--host <address>', 'address to listen on, with --http')
  .env('MCP_RESILIENCE_HOST')
  .default('127.0.0.1')
  .argParser(given('an address or a name of this machine'));
const PORT = new Option('--port <number>', 'port to listen on, with --http')
  .env('MCP_RESILIENCE_PORT')
  .default(3000)
  .argParser(portNumber);
const CONFIG = new Option('--config <file>', 'policies of tools and settings of the HTTP door')
  .env('MCP_RESILIENCE_CONFIG')
  .argParser(given('the path of a file'));

// As with OTEL_*: a variable that is set to nothing counts as unset.
for (const { envVar } of [HOST, PORT, CONFIG]) {
  if (envVar !== undefined && process.env[envVar]?.trim() === '') delete process.env[envVar];
}

const program = new Command('mcp-resilience')
  .description(
    'Resilience for MCP servers: deadlines, retries, breakers and limits, in OpenTelemetry.',
  )
  .version(VERSION)
  .showHelpAfterError('(see mcp-resilience --help)')
  .exitOverride((error) => process.exit(error.exitCode === 0 ? 0 : USAGE_ERROR));

const serveCommand = program
  .command('serve', { isDefault: true })
  .description('serve get_weather, search and health_check over protected calls (the default)')
  .option('--stdio', 'serve one client on stdin and stdout (the default)')
  .option('--http', 'serve clients over Streamable HTTP (or MCP_RESILIENCE_HTTP=1)')
  .addOption(HOST)
  .addOption(PORT)
  .addOption(CONFIG)
  .addHelpText('after', ENVIRONMENT)
  .action(serve);

// Its flags work without its name, so they belong into the first help that people look at.
program.addHelpText('after', () => `\n${serveCommand.helpInformation()}${ENVIRONMENT}`);

await program.parseAsync();
