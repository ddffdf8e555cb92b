/**
 * @module
 * What `wrap` and `gateway` share: how they start and end.
 */
import type { GatewayConfig } from '../gateway/config.ts';
import type { ServedGateway } from '../gateway/gateway.ts';
import { guardStdout } from '../telemetry/stdout-guard.ts';
import { explainListen, flag, runUntilTheEnd, say, USAGE_ERROR } from './command-line.ts';
import type { DoorFlags } from './door-flags.ts';

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
