/**
 * @module
 * Where HTTP faults enter: below `fetch`, in the dispatcher that sends its requests. A request
 * that a fault strikes keeps its URL, its Host and its span, and gets another socket; so its
 * errors, their classification and everything after take the way of the real thing.
 */
import type { RequestOptions } from 'node:http';
import type { Socket } from 'node:net';
import { constants } from 'node:os';
import { context, diag } from '@opentelemetry/api';
import type { Clock } from '../resilience/clock.ts';
import { currentScope } from './call-scope.ts';
import { type HttpFaultKind, isHttpKind } from './fault.ts';
import { playFor } from './fault-answers.ts';
import type { Injection } from './fault-registry.ts';
import type { FaultServer } from './fault-server.ts';
import {
  agentFor,
  type ConnectOptions,
  type Connector,
  type Dispatcher,
  GENERATIONS,
  globalDispatcher,
  setGlobalDispatcher,
} from './undici.ts';

/** How `node:http` has a connection made. */
export type CreateConnection = NonNullable<RequestOptions['createConnection']>;

/** Of libuv, `UV_EAI_NONAME` and `UV_EAI_AGAIN`: what `errno` of a failed look-up is. */
const DNS_ERRNO = { ENOTFOUND: -3008, EAI_AGAIN: -3001 } as const;

/** As `node:net` makes it. */
const refused = ({ hostname, port, protocol }: ConnectOptions): Error => {
  const number = Number(port) || (protocol === 'https:' ? 443 : 80);
  return Object.assign(new Error(`connect ECONNREFUSED ${hostname}:${number}`), {
    errno: -constants.errno.ECONNREFUSED,
    code: 'ECONNREFUSED',
    syscall: 'connect',
    address: hostname,
    port: number,
  });
};

/** As `node:dns` makes it. */
const notFound = ({ hostname }: ConnectOptions, code: keyof typeof DNS_ERRNO): Error =>
  Object.assign(new Error(`getaddrinfo ${code} ${hostname}`), {
    errno: DNS_ERRNO[code],
    code,
    syscall: 'getaddrinfo',
    hostname,
  });

/** The injection of a fault that acts on requests. */
type HttpInjection = Injection & { readonly kind: HttpFaultKind };

/** Set while telemetry is sent, by whatever SDK: what it asks is no request of the call around it. */
const SUPPRESSED = Symbol.for('OpenTelemetry SDK Context Key SUPPRESS_TRACING');

/** What holds for a request that is made now; undefined where none does. */
const injectionNow = (): HttpInjection | undefined => {
  const injection = currentScope()?.injection;
  const kind = injection?.fault.spec.kind;
  if (injection === undefined || kind === undefined || !isHttpKind(kind)) return undefined;
  if (context.active().getValue(SUPPRESSED) === true) return undefined;
  return { ...injection, kind };
};

/** Redirects requests that a fault strikes. */
export class ChaosDispatcher {
  readonly #server: FaultServer;
  readonly #clock: Clock;
  /** What was made of a dispatcher, and the other way round. */
  readonly #wrapped = new WeakMap<Dispatcher, Dispatcher>();
  readonly #originals = new WeakMap<Dispatcher, Dispatcher>();

  constructor(server: FaultServer, clock: Clock) {
    this.#server = server;
    this.#clock = clock;
  }

  /** The dispatcher, through which requests of struck calls meet their fault; else as it is. */
  wrap = <T extends Dispatcher>(dispatcher: T): T => {
    if (this.#originals.has(dispatcher)) return dispatcher;
    const known = this.#wrapped.get(dispatcher);
    if (known) return known as T;
    const dispatch: Dispatcher['dispatch'] = (options, handler) => {
      const injection = injectionNow();
      if (injection === undefined) return dispatcher.dispatch(options, handler);
      const agent = agentFor(handler, this.#connector(injection));
      if (agent === undefined) {
        diag.error('chaos: HTTP faults need the global dispatcher of undici to be an Agent');
        return dispatcher.dispatch(options, handler);
      }
      return (injection.strike() ? agent : dispatcher).dispatch(options, handler);
    };
    // Not by its own `compose`: in undici 6 that makes something which hides what it was.
    const made = new Proxy(dispatcher, {
      get: (target, key) => {
        if (key === 'dispatch') return dispatch;
        const value: unknown = Reflect.get(target, key);
        // Bound: its private fields are not those of the proxy. A class is no method.
        return typeof value === 'function' && key !== 'constructor' ? value.bind(target) : value;
      },
    });
    this.#wrapped.set(dispatcher, made);
    this.#originals.set(made, dispatcher);
    return made;
  };

  /**
   * The same for `node:http`: `createConnection` of the request that is about to be made, where a
   * fault strikes it; undefined for every other one.
   */
  divert = (): CreateConnection | undefined => {
    const injection = injectionNow();
    if (!injection?.strike()) return undefined;
    const connect = this.#connector(injection);
    return (options, callback) => {
      const { hostname, host, port, protocol } = options;
      connect(
        {
          hostname: hostname ?? host ?? '',
          ...(port && { port: String(port) }),
          ...(protocol && { protocol }),
        },
        // Its types promise a socket to somebody who gets an error; Node passes what is there.
        callback as (error: Error | null, socket: Socket | null) => void,
      );
      return undefined;
    };
  };

  /**
   * Wraps the global dispatchers: those of `fetch`, and of undici where a request names none.
   * Somebody may set others at any time, so it is asked again whenever a fault is armed.
   */
  install(): void {
    for (const generation of GENERATIONS) {
      const current = globalDispatcher(generation);
      if (current) setGlobalDispatcher(generation, this.wrap(current));
    }
  }

  /** Puts the global dispatchers back as they were. */
  uninstall(): void {
    for (const generation of GENERATIONS) {
      const current = globalDispatcher(generation);
      const original = current && this.#originals.get(current);
      if (original) setGlobalDispatcher(generation, original);
    }
  }

  #connector({ fault, kind }: HttpInjection): Connector {
    return (options, callback) => {
      const fail = (error: Error): void => void setImmediate(callback, error, null);
      if (kind === 'connection_refused') return fail(refused(options));
      if (kind === 'dns') return fail(notFound(options, fault.spec.dnsCode ?? 'ENOTFOUND'));
      const play = playFor(kind, fault.spec, this.#clock);
      this.#server
        .connect((socket) => {
          // Once the fault is cleared, nothing of it goes on.
          const letGo = fault.onRelease(() => socket.destroy());
          socket.once('close', letGo);
          play(socket);
        })
        .then((socket) => callback(null, socket), fail);
    };
  }
}
