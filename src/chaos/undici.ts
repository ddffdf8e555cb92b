/**
 * @module
 * The parts of undici that fault injection touches, described by shape: Node holds one copy of it
 * for the global `fetch`, an application may hold others of other versions, and none is a
 * dependency of ours.
 */
import type { Socket } from 'node:net';

/** What a connector is asked for. */
export interface ConnectOptions {
  readonly hostname: string;
  readonly host?: string;
  readonly port?: string;
  readonly protocol?: string;
}

/** Makes the socket of a connection (undici, docs/api/Connector.md). */
export type Connector = (
  options: ConnectOptions,
  callback: (error: Error | null, socket: Socket | null) => void,
) => void;

/** Handler of one request; which methods it has depends on the version. */
export interface DispatchHandler {
  readonly onRequestStart?: unknown;
}

/** Any dispatcher: an Agent, a Pool, a Client, or what somebody made of one. */
export interface Dispatcher {
  dispatch(options: object, handler: DispatchHandler): boolean;
}

type AgentClass = new (options: { readonly connect: Connector }) => Dispatcher;
type WrapperClass = new (dispatcher: Dispatcher) => Dispatcher;

/**
 * Where the global dispatcher is kept: `.1` for handlers as undici up to 7 has them, which is
 * where the `fetch` of Node up to 24 looks; `.2` for those of undici 8.
 */
const KEYS = {
  old: Symbol.for('undici.globalDispatcher.1'),
  modern: Symbol.for('undici.globalDispatcher.2'),
} as const;

type Generation = keyof typeof KEYS;
export const GENERATIONS = Object.keys(KEYS) as readonly Generation[];

const globals = globalThis as unknown as Record<symbol, Dispatcher | undefined>;

/** Node loads its undici when it is first needed, and the global dispatcher with it. */
const load = (): void => void new Response(null);

export const globalDispatcher = (generation: Generation): Dispatcher | undefined => {
  if (globals[KEYS.old] === undefined) load();
  return globals[KEYS[generation]];
};

export const setGlobalDispatcher = (generation: Generation, dispatcher: Dispatcher): void => {
  globals[KEYS[generation]] = dispatcher;
};

/** Classes whose constructor takes `connect`, and requests of any origin. */
const AGENTS: readonly string[] = ['Agent', 'EnvHttpProxyAgent'];

const classOf = (generation: Generation): AgentClass | undefined => {
  const made = globalDispatcher(generation)?.constructor;
  return made && AGENTS.includes(made.name) ? (made as AgentClass) : undefined;
};

/**
 * An agent for one request that gets its socket from `connect`, of the generation that understands
 * the handler. Undefined where the process has replaced the global agents by something else.
 */
export const agentFor = (handler: DispatchHandler, connect: Connector): Dispatcher | undefined => {
  const Modern = classOf('modern');
  if (Modern && typeof handler.onRequestStart === 'function') return new Modern({ connect });
  const Old = classOf('old');
  if (Old) return new Old({ connect });
  const old = globalDispatcher('old');
  // undici 8 puts its own agent there, wrapped for old handlers.
  return Modern && old?.constructor.name === 'Dispatcher1Wrapper'
    ? new (old.constructor as WrapperClass)(new Modern({ connect }))
    : undefined;
};
