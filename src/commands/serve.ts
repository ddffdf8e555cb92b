/**
 * @module
 * `mcp-resilience serve`: the reference server on stdio or HTTP.
 */
import { type Command, Option } from 'commander';
import { guardStdout } from '../telemetry/stdout-guard.ts';
import { explainListen, flag, given, runUntilTheEnd, say, USAGE_ERROR } from './command-line.ts';
import { addDoorFlags, type DoorFlags, servesHttp } from './door-flags.ts';

interface Flags extends DoorFlags {
  readonly config?: string;
}

const serve = async (flags: Flags, command: Command): Promise<void> => {
  const http = servesHttp(flags, command);
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
  const command = program
    .command('serve', { isDefault: true })
    .description('serve get_weather, search and health_check over protected calls (the default)');
  addDoorFlags(
    command,
    new Option('--config <file>', 'policies of tools and settings of the HTTP door')
      .env('MCP_RESILIENCE_CONFIG')
      .argParser(given('the path of a file')),
  );
  command.addHelpText('after', ENVIRONMENT).action(serve);
  // Its flags work without its name, so they belong into the first help that people look at.
  program.addHelpText('after', () => `\n${command.helpInformation()}${ENVIRONMENT}`);
};
