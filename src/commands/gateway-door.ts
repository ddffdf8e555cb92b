/**
 * @module
 * What `wrap` and `gateway` share: where they serve, and how they start and end.
 */
import { type Command, Option } from 'commander';
import type { GatewayConfig } from '../gateway/config.ts';
import type { ServedGateway } from '../gateway/gateway.ts';
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

/** Flags that say where it is served. */
export interface DoorFlags {
  readonly http?: boolean;
  readonly stdio?: boolean;
  readonly host: string;
  readonly port: number;
  readonly chaos?: boolean;
}

/** Adds them to a command. */
export const addDoorFlags = (command: Command): Command =>
  command
    .option('--stdio', 'serve one client on stdin and stdout (the default)')
    .option('--http', 'serve clients over Streamable HTTP (or MCP_RESILIENCE_HTTP=1)')
    .addOption(
      new Option('--host <address>', 'address to listen on, with --http')
        .env('MCP_RESILIENCE_HOST')
        .default('127.0.0.1')
        .argParser(given('an address or a name of this machine')),
    )
    .addOption(
      new Option('--port <number>', 'port to listen on, with --http')
        .env('MCP_RESILIENCE_PORT')
        .default(3000)
        .argParser(portNumber),
    )
    .option('--chaos', 'let clients inject faults into calls, to try things out (or MCP_CHAOS=1)');

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
  if (!http && process.stdin.isTTY) {
    say('waiting for an MCP client on stdin; for people there is --http, and --help');
  }
  return http;
};

/** What is served, and how. */
export interface GatewayStart {
  readonly http: boolean;
  readonly flags: DoorFlags;
  /** Read when everything that may print has been tamed. */
  readonly config: () => Promise<GatewayConfig>;
  readonly transparent: boolean;
  readonly healthTool?: boolean;
  /** Called once it serves. */
  readonly onServed?: (served: ServedGateway) => void;
}

/** Serves until the end, and ends the process. */
export const startGateway = async (start: GatewayStart): Promise<void> => {
  const { http, flags, transparent, healthTool = true } = start;
  // Before anything is loaded that might print.
  const stdout = http ? process.stdout : guardStdout();
  const [{ serveGateway }, { ConfigError }] = await Promise.all([
    import('../gateway/gateway.ts'),
    import('../gateway/config-text.ts'),
  ]);
  const chaosIsOn = flags.chaos ?? flag('MCP_CHAOS');
  const chaos = chaosIsOn ? await import('./chaos-gateway.ts') : undefined;
  try {
    const refused = chaos?.chaosRefusal(process.env);
    if (refused !== undefined) throw new ConfigError('the environment', [refused]);
    const served = await serveGateway({
      config: await start.config(),
      chaos: chaos?.createGatewayChaos(),
      transparent,
      healthTool,
      transport: http ? 'http' : 'stdio',
      host: flags.host,
      port: flags.port,
      env: process.env,
      stdin: process.stdin,
      stdout,
      say,
    });
    start.onServed?.(served);
    runUntilTheEnd(served);
  } catch (error) {
    say(`error: ${explainListen(error, flags.host, flags.port)}`);
    process.exit(error instanceof ConfigError ? USAGE_ERROR : 1);
  }
};
