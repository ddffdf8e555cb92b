/**
 * @module
 * The reference server as one process: telemetry, tools, a door, and an orderly end.
 */
import { loadConfig } from './config.ts';
import { failureResult } from './mcp/protect.ts';
import { createServer } from './mcp/server.ts';
import { serveHttp } from './mcp/transports/http.ts';
import { serveStdio } from './mcp/transports/stdio.ts';
import { classify } from './resilience/failure.ts';
import { PipelineRegistry } from './resilience/registry.ts';
import { startTelemetry } from './telemetry/start.ts';
import { createTools } from './tools/index.ts';
import { VERSION } from './version.ts';

/** What to serve, and where. */
export interface ServeOptions {
  readonly transport: 'http' | 'stdio';
  readonly host: string;
  readonly port: number;
  readonly configFile?: string;
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

const INSTRUCTIONS =
  'Weather and search over protected calls. A result may be marked cached or degraded; a failed ' +
  'call says whether and when to try again. health_check tells which dependencies work.';

const isLoopback = (host: string): boolean =>
  host === 'localhost' || host === '::1' || /^127(\.\d+){3}$/.test(host);

/**
 * Starts serving.
 *
 * @throws ConfigError, or an error that says what to mend, before anything is served
 */
export const serve = async (options: ServeOptions): Promise<Served> => {
  const { transport, host, port, env, say } = options;
  const config = loadConfig(options.configFile);
  const telemetry = startTelemetry({ env });
  const registry = new PipelineRegistry();
  const create = createServer({
    name: 'mcp-resilience',
    version: VERSION,
    instructions: INSTRUCTIONS,
    tools: createTools({
      registry,
      env,
      policies: config.tools,
      snapshot: () => telemetry.snapshot(),
      destination: telemetry.destination,
    }),
    toErrorResult: (error) => failureResult(classify(error)),
  });
  const end = async (close: () => Promise<void>): Promise<void> => {
    try {
      await close();
    } catch (error) {
      say(`closing: ${error instanceof Error ? error.message : String(error)}`);
    }
    registry.destroy();
    await telemetry.shutdown();
  };

  if (transport === 'stdio') {
    const door = await serveStdio({
      createServer: create,
      input: process.stdin,
      output: options.stdout,
    });
    say('mcp-resilience serves MCP on stdio');
    say(`telemetry goes to ${telemetry.destination}`);
    return { ended: door.closed, close: () => end(() => door.close()) };
  }

  const door = await serveHttp({ ...config.http, createServer: create, host, port });
  say(`mcp-resilience serves MCP at ${door.url}`);
  if (!isLoopback(host)) {
    say(`warning: ${host} can be reached from other machines, and nothing asks who calls`);
  }
  say(`add it to a client:  claude mcp add --transport http mcp-resilience ${door.url}`);
  say(`telemetry goes to ${telemetry.destination}`);
  return { ended: new Promise(() => {}), close: () => end(() => door.close()) };
};
