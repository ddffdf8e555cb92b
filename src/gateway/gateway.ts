/**
 * @module
 * The gateway as one process: telemetry, the upstreams, a door in front of them, and an orderly
 * end.
 */
import type { Authenticator } from '../mcp/auth.ts';
import { type HttpDoor, serveHttp } from '../mcp/transports/http.ts';
import type { HttpSettings } from '../mcp/transports/http-settings.ts';
import { serveStdio } from '../mcp/transports/stdio.ts';
import { type Clock, systemClock } from '../resilience/clock.ts';
import { startTelemetry } from '../telemetry/start.ts';
import type { GatewayConfig } from './config.ts';
import { authenticationOf } from './config-auth.ts';
import type { GatewayChaos } from './gateway-chaos.ts';
import { createGateway, type GatewayCore } from './gateway-core.ts';
import { limitsOf } from './gateway-limits.ts';
import { type Unreachable, warmUp } from './gateway-warmup.ts';
import { proxyLines } from './http-proxy.ts';
import type { GatewayUpstreams } from './upstream-manager.ts';

/** What to serve, and where. */
export interface ServeGatewayOptions {
  readonly config: GatewayConfig;
  /**
   * The one upstream is shown as it is: its names, its capabilities, its instructions, and
   * nothing besides. Default false: the gateway speaks for itself.
   */
  readonly transparent?: boolean;
  /** False: it does not offer `health_check`, whatever the configuration says. */
  readonly healthTool?: boolean;
  /** Fault injection, where it is on. It is closed with the gateway, also when that fails. */
  readonly chaos?: GatewayChaos | undefined;
  readonly transport: 'http' | 'stdio';
  readonly host: string;
  readonly port: number;
  readonly env: NodeJS.ProcessEnv;
  readonly stdin: NodeJS.ReadStream;
  /** Where JSON-RPC goes on stdio: the real stdout. */
  readonly stdout: NodeJS.WriteStream;
  /** Tells a person what is going on. */
  readonly say: (line: string) => void;
  readonly clock?: Clock;
}

/** A gateway that runs. */
export interface ServedGateway {
  /** Of the MCP endpoint, where it is HTTP. */
  readonly url?: string;
  /** The servers behind it. */
  readonly upstreams: GatewayUpstreams;
  /** How its HTTP door is at this moment. */
  readonly stats?: HttpDoor['stats'];
  /** Resolves when it has ended by itself: the client on stdio has gone. */
  readonly ended: Promise<void>;
  /** Takes an edited configuration: servers that stayed the same are left alone. */
  apply(config: GatewayConfig): Promise<void>;
  /** Takes nothing new, lets running calls finish, ends all servers. Never rejects. */
  close(): Promise<void>;
}

/** A server was not there at the start, and every one must be. */
class UnreachableError extends Error {
  override readonly name = 'UnreachableError';

  constructor(unreachable: readonly Unreachable[]) {
    super(
      [
        'not every server could be reached, and --strict asks for all of them:',
        ...unreachable.map(({ upstream, reason }) => `  - ${upstream}: ${reason}`),
      ].join('\n'),
    );
  }
}

/**
 * One busy client behind the door asks for more than the reference server is made for, and each
 * of its sessions may be a process of every server.
 */
const HTTP_DEFAULTS: HttpSettings = {
  rateLimit: false,
  // A client on `fetch` opens some for each call that waits, and each of many has its stream.
  maxConnections: 1_000,
  maxBodyBytes: 64 * 1024 * 1024,
  maxSessions: 100,
};

/** Longest line on stdin: arguments may hold a file. */
const MAX_LINE_BYTES = 64 * 1024 * 1024;

/** A door that is open, and how it is closed. */
interface Open extends Pick<ServedGateway, 'url' | 'stats' | 'ended'> {
  readonly close: () => Promise<void>;
}

const textOf = (error: unknown): string => (error instanceof Error ? error.message : String(error));

const isLoopback = (host: string): boolean =>
  host === 'localhost' || host === '::1' || /^127(\.\d+){3}$/.test(host);

const isUsable = ({ state }: { readonly state: string }): boolean =>
  state === 'ready' || state === 'degraded';

const openStdio = async (options: ServeGatewayOptions, core: GatewayCore): Promise<Open> => {
  const { stdin, stdout, say, clock = systemClock } = options;
  const door = await serveStdio({
    createServer: core.createServer,
    input: stdin,
    output: stdout,
    maxLineBytes: MAX_LINE_BYTES,
    clock,
  });
  say(`mcp-resilience serves ${core.manager.configs.map(({ name }) => name).join(', ')} on stdio`);
  return {
    ended: door.closed,
    close: async () => {
      // A client that has closed the input is not to be kept waiting. Otherwise nothing more is
      // read, and what runs may finish, as if the client had closed it now.
      if (stdin.readableEnded || stdin.destroyed) await door.close();
      else stdin.destroy();
      await door.closed;
    },
  };
};

const openHttp = async (
  options: ServeGatewayOptions,
  core: GatewayCore,
  http: HttpSettings,
  auth: Authenticator | undefined,
): Promise<Open> => {
  const { host, port, say, config, clock = systemClock } = options;
  const { manager, createServer } = core;
  const { strict } = config;
  const door = await serveHttp({
    ...http,
    createServer,
    host,
    port,
    clock,
    ready: () => (strict ? manager.health().every(isUsable) : manager.health().some(isUsable)),
    ...(auth && { authenticate: auth.authenticate, documents: auth.documents }),
  });
  say(`mcp-resilience serves MCP at ${door.url}`);
  if (!isLoopback(host) && !auth) {
    say(
      `warning: ${host} can be reached from other machines, and nothing asks who calls; ` +
        'set gateway.auth, and the names that they call it by in gateway.http.allowedHosts',
    );
  }
  return {
    url: door.url,
    stats: () => door.stats(),
    ended: new Promise(() => {}),
    close: () => door.close(),
  };
};

/** Who may call over HTTP: found out before anything is started. */
const authenticatorOf = (
  { config, transport, env, say, clock = systemClock }: ServeGatewayOptions,
  { path }: HttpSettings,
): Authenticator | undefined => {
  if (transport === 'stdio') return undefined;
  const settings = { env, clock, log: say, ...(path !== undefined && { path }) };
  return authenticationOf(config.auth, 'gateway.auth', settings);
};

/**
 * Starts serving.
 *
 * @throws UnreachableError with `strict`; ConfigError for tokens that cannot be had; the error of
 * `listen`; a `ZodError` for settings of the door that are out of range. Nothing is left running
 * then.
 */
export const serveGateway = async (options: ServeGatewayOptions): Promise<ServedGateway> => {
  const { config, transport, env, say, chaos, clock = systemClock } = options;
  const http: HttpSettings = { ...HTTP_DEFAULTS, ...config.http };
  const auth = authenticatorOf(options, http);
  const telemetry = startTelemetry({ env });
  const core = createGateway({
    config,
    transparent: options.transparent ?? false,
    healthTool: options.healthTool !== false && config.healthTool,
    stateless: transport === 'http' && http.sessions === false,
    chaos,
    say,
    clock,
    env,
  });

  const end = async (close: () => Promise<void>): Promise<void> => {
    // Calls that a fault holds are let go first, so that they can finish.
    for (const step of [async () => chaos?.close(), close, core.close, async () => auth?.close()]) {
      try {
        await step();
      } catch (error) {
        say(`closing: ${textOf(error)}`);
      }
    }
    await telemetry.shutdown();
  };
  const lookAround = async (): Promise<void> => {
    const unreachable = await warmUp(core.context);
    if (config.strict && unreachable.length > 0) throw new UnreachableError(unreachable);
    for (const { upstream, reason } of unreachable) say(`warning: ${upstream}: ${reason}`);
  };

  try {
    // Whoever asks for all of them is not served by fewer.
    if (config.strict) await lookAround();
    const door = await (transport === 'stdio'
      ? openStdio(options, core)
      : openHttp(options, core, http, auth));
    for (const upstream of core.manager.configs) for (const line of limitsOf(upstream)) say(line);
    for (const line of proxyLines(core.manager.configs, env)) say(line);
    for (const name of config.disabled) say(`${name} is disabled`);
    for (const notice of config.notices) say(`note: ${notice}`);
    say(`telemetry goes to ${telemetry.destination}`);
    if (chaos) {
      say(
        'warning: chaos is on: whoever can call tools here can make them fail, by inject_fault; ' +
          'halt_chaos ends all faults, and so does a restart',
      );
    }
    if (transport === 'http' && !config.strict) {
      void lookAround().catch((error: unknown) => say(`warning: ${textOf(error)}`));
    }
    const { url, stats, ended } = door;
    return {
      ...(url !== undefined && { url }),
      ...(stats && { stats }),
      upstreams: core.manager,
      ended,
      apply: core.apply,
      close: () => end(door.close),
    };
  } catch (error) {
    await end(async () => {});
    throw error;
  }
};
