/**
 * @module
 * The answer to `initialize`: that of the upstream as it is where there is one, else what all of
 * them can do together.
 */
import { LATEST_PROTOCOL_VERSION, SUPPORTED_PROTOCOL_VERSIONS } from '../mcp/jsonrpc.ts';
import { declares, isJson, jsonAt } from './catalog-kinds.ts';
import type { ClientFacts, Json } from './types.ts';

/** What one upstream answered; undefined when it could not be reached in time. */
export interface Introduction {
  readonly upstream: string;
  readonly result: Json | undefined;
}

/** How the gateway introduces itself. */
export interface GatewayFacts {
  readonly name: string;
  readonly version: string;
}

/** What a client declares that does not introduce itself: nothing. */
export const unknownClient = ({ name, version }: GatewayFacts): ClientFacts => ({
  protocolVersion: LATEST_PROTOCOL_VERSION,
  capabilities: {},
  clientInfo: { name, version },
});

/** What a client told of itself. */
export const clientFacts = (params: Json): ClientFacts => ({
  protocolVersion: String(params.protocolVersion),
  capabilities: jsonAt(params, 'capabilities'),
  clientInfo: jsonAt(params, 'clientInfo'),
});

/**
 * Tasks are told apart by ids that two upstreams may both give; they are relayed where there is
 * one upstream.
 */
const NOT_TOGETHER = new Set(['tasks']);

/**
 * Capabilities of all upstreams together. The gateway itself declares `listChanged`: an upstream
 * that comes back changes what there is, whether or not its own lists ever change. One that is
 * not there yet may have resources and prompts; a client that was told of none would never ask.
 */
const together = (introductions: readonly Introduction[]): Json => {
  const results = introductions.map(({ result }) => result);
  const absent = results.some((result) => result === undefined);
  // No object while it grows: `__proto__` is a key like any other in what an upstream sends.
  const found = new Map<string, Json>();
  for (const result of results) {
    for (const [key, value] of Object.entries(jsonAt(result, 'capabilities'))) {
      if (NOT_TOGETHER.has(key) || !isJson(value)) continue;
      found.set(key, { ...value, ...found.get(key) });
    }
  }
  const lists = ['resources', 'prompts'].filter(
    (name) => absent || results.some((result) => declares(result, name)),
  );
  for (const name of ['tools', ...lists]) {
    found.set(name, { ...found.get(name), listChanged: true });
  }
  const subscribes = results.some(
    (result) => jsonAt(jsonAt(result, 'capabilities'), 'resources').subscribe === true,
  );
  if (subscribes) found.set('resources', { ...found.get('resources'), subscribe: true });
  return Object.fromEntries(found);
};

const instructionsOf = (introductions: readonly Introduction[], health: string | undefined) => {
  const parts = introductions.flatMap(({ upstream, result }) => {
    const text = result?.instructions;
    return typeof text === 'string' && text.trim() !== '' ? [`# ${upstream}\n\n${text}`] : [];
  });
  const absent = introductions.filter(({ result }) => !result).map(({ upstream }) => upstream);
  if (absent.length > 0) {
    const more = health === undefined ? '' : ` ${health} tells how it is.`;
    parts.push(
      `Not reachable at this moment: ${absent.join(', ')}. What they offer is listed once they are back.${more}`,
    );
  }
  return parts.length > 0 ? parts.join('\n\n') : undefined;
};

/** The answer for several upstreams. */
export const introduceTogether = (
  client: ClientFacts,
  introductions: readonly Introduction[],
  gateway: GatewayFacts,
  healthTool: string | undefined,
): Json => {
  const instructions = instructionsOf(introductions, healthTool);
  const supported = SUPPORTED_PROTOCOL_VERSIONS.includes(client.protocolVersion);
  return {
    protocolVersion: supported ? client.protocolVersion : LATEST_PROTOCOL_VERSION,
    capabilities: together(introductions),
    serverInfo: { name: gateway.name, version: gateway.version },
    ...(instructions !== undefined && { instructions }),
  };
};
