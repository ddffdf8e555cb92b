/**
 * @module
 * `mcp-resilience serve`: the reference server on stdio or HTTP.
 */
import { type Command, Option } from 'commander';
import { guardStdout } from '../telemetry/stdout-guard.ts';
import {
  explainListen,
  flag,
  given,
  portNumber,
  refuse,
  runUntilTheEnd,
  say,
  USAGE_ERROR,
} from './command-line.ts';

interface Flags {
  readonly http?: boolean;
  readonly stdio?: boolean;
  readonly host: string;
  readonly port: number;
  readonly config?: string;
  readonly chaos?: boolean;
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
    import('../serve.ts'),
    import('../config.ts'),
  ]);
  try {
    const served = await start({
      transport: http ? 'http' : 'stdio',
      host: flags.host,
      port: flags.port,
      ...(flags.config !== undefined && { configFile: flags.config }),
      chaos: flags.chaos ?? flag('MCP_CHAOS'),
      env: process.env,
      stdout,
      say,
    });
    runUntilTheEnd(served);
  } catch (error) {
    say(`error: ${explainListen(error, flags.host, flags.port)}`);
    process.exit(error instanceof ConfigError ? USAGE_ERROR : 1);
  }
};

const ENVIRONMENT = `
Environment:
  OTEL_EXPORTER_OTLP_ENDPOINT  where telemetry goes, such as http://localhost:4318; all of OTEL_* holds
  MCP_RESILIENCE_LANG          language of failure texts: en (the default) or zh
  WEATHER_API_URL              base of the weather API (https://wttr.in)
  SEARCH_API_URL               base of the search API (https://en.wikipedia.org)
  MCP_CHAOS_IN_PRODUCTION      1 allows --chaos where NODE_ENV is production`;

/** Adds the command to the program. It is the one that runs when none is named. */
export const addServe = (program: Command): void => {
  const host = new Option('--host <address>', 'address to listen on, with --http')
    .env('MCP_RESILIENCE_HOST')
    .default('127.0.0.1')
    .argParser(given('an address or a name of this machine'));
  const port = new Option('--port <number>', 'port to listen on, with --http')
    .env('MCP_RESILIENCE_PORT')
    .default(3000)
    .argParser(portNumber);
  const config = new Option('--config <file>', 'policies of tools and settings of the HTTP door')
    .env('MCP_RESILIENCE_CONFIG')
    .argParser(given('the path of a file'));
  // As with OTEL_*: a variable that is set to nothing counts as unset.
  for (const { envVar } of [host, port, config]) {
    if (envVar !== undefined && process.env[envVar]?.trim() === '') delete process.env[envVar];
  }
  const command = program
    .command('serve', { isDefault: true })
    .description('serve get_weather, search and health_check over protected calls (the default)')
    .option('--stdio', 'serve one client on stdin and stdout (the default)')
    .option('--http', 'serve clients over Streamable HTTP (or MCP_RESILIENCE_HTTP=1)')
    .addOption(host)
    .addOption(port)
    .addOption(config)
    .option('--chaos', 'let clients inject faults into calls, to try things out (or MCP_CHAOS=1)')
    .addHelpText('after', ENVIRONMENT)
    .action(serve);
  // Its flags work without its name, so they belong into the first help that people look at.
  program.addHelpText('after', () => `\n${command.helpInformation()}${ENVIRONMENT}`);
};
