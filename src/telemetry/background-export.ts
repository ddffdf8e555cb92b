/**
 * @module
 * Takes OTLP exports off the list of things that Node waits for before it exits by itself.
 *
 * An export that a collector never answers holds a socket, a retry timer and the timer of the
 * processor that waits for it: up to OTEL_EXPORTER_OTLP_TIMEOUT (10 s) in which a finished
 * program does not end. What is unsent then is flushed, within a bound, by `shutdown()`.
 *
 * The SDK has no setting for this, so sockets and retry timers are reached through private
 * fields of its exporters (0.300). Where an update renames them nothing breaks, but a dead
 * collector delays a natural exit again; the tests of this file tell.
 */
import type { Socket } from 'node:net';

interface Result {
  readonly code: number;
  readonly error?: Error;
}

/** What span, metric and log exporters of the SDK have in common. */
interface ExporterLike {
  export(batch: never, done: (result: Result) => void): void;
  forceFlush?(): Promise<void>;
}

type Send = (data: unknown, timeout: number) => Promise<unknown>;

interface OtlpInternals {
  readonly _delegate?: { readonly _transport?: Transport };
}

interface Transport {
  retry?: (data: unknown, timeout: number, delay: number) => Promise<unknown>;
  shutdown?: () => void;
  readonly _transport?: {
    readonly send: Send;
    readonly _parameters?: { agentFactory?: (protocol: string) => Agent | Promise<Agent> };
  };
}

interface Agent {
  createConnection?: (...args: never[]) => Socket | null | undefined;
  reuseSocket?: (socket: Socket, request: never) => void;
}

/** `ExportResultCode.SUCCESS` of the SDK. */
const SUCCESS = 0;

/** The exports of one process that run in the background. */
export interface BackgroundExports {
  /**
   * Changes an exporter of spans, metrics or logs so that a batch counts as handed over at once, and returns it. Its own
   * limit of exports at a time (30) bounds what piles up behind a slow collector.
   */
  run(exporter: object): object;
  /** Resolves when what is under way now was sent or given up. Never rejects. */
  settled(): Promise<void>;
  /** Cuts off whatever is under way: afterwards no export holds the process. */
  abandon(): void;
}

/** @param report hears of each export that failed */
export const createBackgroundExports = (report: (error: Error) => void): BackgroundExports => {
  const exporters: ExporterLike[] = [];
  const transports: Transport[] = [];
  const sockets = new Set<Socket>();
  let underWay = 0;
  let abandoned = false;

  const release = (agent: Agent): Agent => {
    const connect = agent.createConnection?.bind(agent);
    const reuse = agent.reuseSocket?.bind(agent);
    if (connect) {
      agent.createConnection = (...args) => {
        const socket = connect(...args);
        if (!socket) return socket;
        sockets.add(socket.unref());
        return socket.once('close', () => sockets.delete(socket));
      };
    }
    if (reuse) {
      // An agent refs a socket that it takes up again.
      agent.reuseSocket = (socket, request) => {
        reuse(socket, request);
        socket.unref();
      };
    }
    return agent;
  };

  const detach = (transport: Transport): void => {
    transports.push(transport);
    const http = transport._transport;
    if (transport.retry && http) {
      transport.retry = (data, timeout, delay) =>
        new Promise((resolve, reject) => {
          if (abandoned) resolve({ status: 'failure' });
          else setTimeout(() => http.send(data, timeout).then(resolve, reject), delay).unref();
        });
    }
    const makeAgent = http?._parameters?.agentFactory;
    if (http?._parameters && makeAgent) {
      http._parameters.agentFactory = async (protocol) => release(await makeAgent(protocol));
    }
  };

  return {
    run(made) {
      const exporter = made as ExporterLike;
      const transport = (exporter as OtlpInternals)._delegate?._transport;
      if (transport) detach(transport);
      const send = exporter.export.bind(exporter);
      exporter.export = (batch, done) => {
        underWay++;
        send(batch, ({ code, error }) => {
          underWay--;
          if (code !== SUCCESS && !abandoned) report(error ?? new Error('export failed'));
        });
        done({ code: SUCCESS });
      };
      exporters.push(exporter);
      return exporter;
    },
    async settled() {
      await Promise.allSettled(exporters.map((exporter) => exporter.forceFlush?.()));
    },
    abandon() {
      abandoned = true;
      if (underWay > 0)
        report(new Error(`${underWay} batches unanswered at shutdown were dropped`));
      for (const socket of sockets) socket.destroy();
      for (const transport of transports) transport.shutdown?.();
    },
  };
};
