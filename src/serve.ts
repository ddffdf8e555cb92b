/**
 * @module
 * The reference server as one process: telemetry, tools, a door, and an orderly end.
 */
import { ConfigError, loadConfig } from './config.ts';
import { authenticationOf } from './gateway/config-auth.ts';
import { createServer } from './mcp/server.ts';
import { serveHttp } from './mcp/transports/http.ts';
import { serveStdio } from './mcp/transports/stdio.ts';
import { PipelineRegistry } from './resilience/registry.ts';
import { startTelemetry } from './telemetry/start.ts';
import { createTools, describePolicies } from './tools/index.ts';
import type { ToolPolicy } from './tools/policies.ts';
import { DEFAULT_SEARCH_URL } from './tools/search.ts';
import { baseUrl } from './tools/upstream.ts';
import { DEFAULT_WEATHER_URL } from './tools/weather.ts';
import { VERSION } from './version.ts';

/** What to serve, and where. */
export interface ServeOptions {
  readonly transport: 'http' | 'stdio';
  readonly host: string;
  readonly port: number;
  readonly configFile?: string;
  /** Whether faults can be injected. Default false: nothing of it is there then. */
  readonly chaos?: boolean;
  readonly env: NodeJS.ProcessEnv;
  /** Where JSON-RPC goes on stdio: the real stdout. */
  readonly stdout: NodeJS.WriteStream;
  /** Tells a person what is going on. */
  readonly say: (line: string) => void;
}

/** A server that runs. */
export interface Served {
  /** Resolves when it has ended by itself: the client on stdio has gone. */
  readonly ended: Promise<void>;
  /** Takes nothing new, lets running calls finish, sends telemetry that waits. Never rejects. */
  close(): Promise<void>;
}

const CHAOS_INSTRUCTIONS =
  ' Chaos is on: inject_fault makes calls fail on purpose. Read chaos://playbook before you use it; ' +
  'halt_chaos ends all of it.';

const INSTRUCTIONS =
  'Weather and search over protected calls. A result may be marked cached or degraded; a failed ' +
  'call says whether and when to try again. health_check tells which dependencies work.';

const isLoopback = (host: string): boolean =>
  host === 'localhost' || host === '::1' || /^127(\.\d+){3}$/.test(host);

const UPSTREAMS = [
  ['WEATHER_API_URL', DEFAULT_WEATHER_URL],
  ['SEARCH_API_URL', DEFAULT_SEARCH_URL],
] as const;

const LANGUAGES = ['en', 'zh'];

/**
 * Refuses variables that say nothing we know, all of them at once and before anything is started.
 *
 * @param refused why something that was asked for must not be, if so
 */
const checkEnvironment = (env: NodeJS.ProcessEnv, refused: string | undefined): void => {
  const problems: string[] = refused === undefined ? [] : [refused];
  const language = env.MCP_RESILIENCE_LANG?.trim().toLowerCase() || 'en';
  if (!LANGUAGES.includes(language)) {
    problems.push(`MCP_RESILIENCE_LANG must be ${LANGUAGES.join(' or ')}, got "${language}"`);
  }
  for (const [variable, fallback] of UPSTREAMS) {
    try {
      baseUrl(env, variable, fallback);
    } catch (error) {
      problems.push(error instanceof Error ? error.message : String(error));
    }
  }
  if (problems.length > 0) throw new ConfigError('the environment', problems);
};

const duration = (ms: number | undefined): string => {
  if (ms === undefined) return 'no limit';
  return ms % 1_000 === 0 ? `${ms / 1_000} s` : `${ms} ms`;
};

/** What holds for a tool in the end, so that a setting that was not taken is seen at once. */
const limitsOf = ({ tool, dependency, policy }: ToolPolicy): string => {
  const { timeout, deadline, retry } = policy;
  const retries = retry ? (retry.maxRetries ?? 0) : 0;
  return (
    `${tool} calls ${dependency}: attempt timeout ${duration(timeout)}, ` +
    `deadline ${duration(deadline)}, retries ${retries}`
  );
};

/**
 * Starts serving.
 *
 * @throws ConfigError, or an error that says what to mend, before anything is served
 */
export const serve = async (options: ServeOptions): Promise<Served> => {
  const { transport, host, port, env, say } = options;
  const config = loadConfig(options.configFile);
  const module = options.chaos ? await import('./chaos/chaos.ts') : undefined;
  checkEnvironment(env, module?.chaosRefusal(env));
  const telemetry = startTelemetry({ env });
  const chaos = module?.createChaos({ targets: describePolicies(config.tools) });
  const registry = new PipelineRegistry(chaos && { inject: chaos.inject });
  const tools = createTools({
    registry,
    env,
    policies: config.tools,
    snapshot: () => telemetry.snapshot(),
    destination: telemetry.destination,
  });
  const create = createServer({
    name: 'mcp-resilience',
    version: VERSION,
    instructions: INSTRUCTIONS + (chaos ? CHAOS_INSTRUCTIONS : ''),
    tools: chaos ? [...tools.map(chaos.watch), ...chaos.tools] : tools,
    ...(chaos && { resources: chaos.resources, prompts: chaos.prompts }),
  });
  const end = async (close: () => Promise<void>): Promise<void> => {
    // Calls that a fault holds are let go, so that they can finish.
    await chaos?.close();
    try {
      await close();
    } catch (error) {
      say(`closing: ${error instanceof Error ? error.message : String(error)}`);
    }
    registry.destroy();
    await telemetry.shutdown();
  };

  const sayWhatHolds = (): void => {
    for (const entry of describePolicies(config.tools)) say(limitsOf(entry));
    say(`telemetry goes to ${telemetry.destination}`);
    if (chaos) {
      say(
        'warning: chaos is on: whoever can call tools here can make them fail, by inject_fault; ' +
          'halt_chaos ends all faults, and so does a restart',
      );
    }
  };

  if (transport === 'stdio') {
    const { stdin } = process;
    const door = await serveStdio({
      createServer: create,
      input: stdin,
      output: options.stdout,
    });
    say('mcp-resilience serves MCP on stdio');
    sayWhatHolds();
    const close = async (): Promise<void> => {
      // A client that has closed the input is not to be kept waiting. Otherwise nothing more is
      // read, and what runs may finish, as if the client had closed it now.
      if (stdin.readableEnded || stdin.destroyed) await door.close();
      else stdin.destroy();
      await door.closed;
    };
    return { ended: door.closed, close: () => end(close) };
  }

  const { auth, ...http } = config.http;
  const authenticator = authenticationOf(auth, options.configFile ?? 'the configuration', {
    env,
    pipelines: registry,
    log: say,
    ...(http.path !== undefined && { path: http.path }),
  });
  const { authenticate, documents } = authenticator ?? {};
  const door = await serveHttp({
    ...http,
    ...(authenticate && documents && { authenticate, documents }),
    createServer: create,
    host,
    port,
  });
  say(`mcp-resilience serves MCP at ${door.url}`);
  if (!isLoopback(host)) {
    const open = authenticator ? '' : ', and nothing asks who calls';
    say(
      `warning: ${host} can be reached from other machines${open}; ` +
        'names that they call it by must stand in http.allowedHosts',
    );
  }
  // "Any address" is one to listen on, not one to call.
  const url = door.url.replace(/\/\/(?:0\.0\.0\.0|\[::\]):/, '//127.0.0.1:');
  say(`add it to a client:  claude mcp add --transport http mcp-resilience ${url}`);
  sayWhatHolds();
  return { ended: new Promise(() => {}), close: () => end(() => door.close()) };
};
