/**
 * @module
 * The real Collector, Jaeger and Prometheus, started as docker-compose.yml starts them, with the
 * files of otel/ moved to loopback.
 */
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileOf, service } from './compose.ts';
import { type Changes, relocate } from './configuration.ts';
import { type Jaeger, jaegerAt } from './jaeger.ts';
import { moves, type Ports, stackPorts } from './moves.ts';
import { type RunningProgram, startProgram } from './processes.ts';
import { program } from './programs.ts';
import { type Prometheus, prometheusAt } from './prometheus.ts';
import { scaled, scaleRules } from './scaled-rules.ts';

export type ServiceName = 'otel-collector' | 'jaeger' | 'prometheus';

export interface Stack {
  /** Where logs, data and configuration are. */
  readonly folder: string;
  /** Endpoint of OTLP over HTTP. */
  readonly otlp: string;
  readonly jaeger: Jaeger;
  readonly prometheus: Prometheus;
  /** Log of a program, over all its starts. */
  log(name: ServiceName): string;
  start(name: ServiceName): Promise<void>;
  end(name: ServiceName, signal?: NodeJS.Signals): Promise<void>;
  /** Has a program that sends to the stack ended together with it. */
  adopt(sender: RunningProgram): void;
  /** Ends all of it: senders first, so that nothing that they have left to say is lost. */
  stop(): Promise<void>;
}

const okFrom = (port: number, path: string) => async () =>
  (await fetch(`http://127.0.0.1:${port}${path}`)).ok;

/** How each service is started: the program, and the arguments that name places. */
const startsOf = (ports: Ports, folder: string) =>
  ({
    'otel-collector': {
      program: 'otelcol',
      places: { '--config': join(folder, 'collector.yaml') },
      extra: [],
      ready: okFrom(ports.collectorHealth, '/'),
    },
    jaeger: {
      program: 'jaeger',
      places: { '--config': join(folder, 'jaeger.yaml') },
      extra: [],
      ready: okFrom(ports.jaegerHealth, '/status'),
    },
    prometheus: {
      program: 'prometheus',
      places: {
        '--config.file': join(folder, 'prometheus.yaml'),
        '--storage.tsdb.path': join(folder, 'prometheus'),
      },
      extra: [
        `--web.listen-address=127.0.0.1:${ports.prometheus}`,
        // Scaled as the durations of the rules are.
        `--query.lookback-delta=${scaled('5m')}`,
      ],
      ready: okFrom(ports.prometheus, '/-/ready'),
    },
  }) as const;

/** The command of the service, with its places moved. */
const argumentsOf = (name: ServiceName, places: Readonly<Record<string, string>>): string[] =>
  (service(name).command ?? []).map((argument) => {
    const [flag = ''] = argument.split('=');
    return places[flag] === undefined ? argument : `${flag}=${places[flag]}`;
  });

export interface StackOptions {
  /** Default: all three. The last one is started when the others are ready. */
  readonly services?: readonly ServiceName[];
  /** What is other in collector.yaml, besides places. */
  readonly collector?: Changes;
}

/** Starts the programs, with the rules on a shorter scale of time. */
export const startStack = async (
  folder: string,
  { services = ['jaeger', 'prometheus', 'otel-collector'], collector }: StackOptions = {},
): Promise<Stack> => {
  const ports = await stackPorts();
  mkdirSync(folder, { recursive: true });
  for (const [file, places] of Object.entries(moves(ports, folder))) {
    const changes = { ...places, ...(file === 'collector.yaml' && collector) };
    writeFileSync(join(folder, file), relocate(fileOf(`otel/${file}`), changes));
  }
  writeFileSync(join(folder, 'rules.yaml'), scaleRules(fileOf('otel/rules.yaml')));
  // As the volumes of the containers: there before the programs are.
  for (const data of ['collector', 'jaeger/keys', 'jaeger/values', 'prometheus']) {
    mkdirSync(join(folder, data), { recursive: true });
  }
  const starts = startsOf(ports, folder);
  const running = new Map<ServiceName, RunningProgram>();
  const logs = new Map<ServiceName, () => string>();
  const senders: RunningProgram[] = [];
  const start = async (name: ServiceName): Promise<void> => {
    const { program: binary, places, extra, ready } = starts[name];
    const { GOMEMLIMIT } = service(name).environment ?? {};
    const started = await startProgram({
      name,
      command: await program(binary),
      args: [...argumentsOf(name, places), ...extra],
      env: { ...(GOMEMLIMIT !== undefined && { GOMEMLIMIT }) },
      folder,
      ready,
    });
    running.set(name, started);
    logs.set(name, started.log);
  };
  const end = async (name: ServiceName, signal?: NodeJS.Signals): Promise<void> => {
    await running.get(name)?.stop(signal);
    running.delete(name);
  };
  // The Collector is last: it complains of what it cannot reach.
  const [first, last] = [services.slice(0, -1), services.slice(-1)];
  for (const together of [first, last]) await Promise.all(together.map((name) => start(name)));
  return {
    folder,
    otlp: `http://127.0.0.1:${ports.otlpHttp}`,
    jaeger: jaegerAt(`http://127.0.0.1:${ports.jaegerQuery}`),
    prometheus: prometheusAt(`http://127.0.0.1:${ports.prometheus}`),
    log: (name) => logs.get(name)?.() ?? '',
    start,
    end,
    adopt: (sender) => void senders.push(sender),
    stop: async () => {
      await Promise.all(senders.map((sender) => sender.stop()));
      await Promise.all([...running.keys()].map((name) => end(name)));
    },
  };
};
