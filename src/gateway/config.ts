/**
 * @module
 * The configuration of the gateway: the file that MCP clients have already, with a `resilience`
 * block where somebody wants one. Whatever is wrong with what is read here is refused, all of it
 * at once, each with its path; what is not read here belongs to other programs.
 */
import { type AuthSettings, authSettingsSchema } from '../mcp/auth-settings.ts';
import { checkSettings } from '../mcp/settings-problems.ts';
import { type HttpSettings, httpSettingsSchema } from '../mcp/transports/http-settings.ts';
import { DAY, isObject } from '../resilience/settings.ts';
import { ADDRESS_KEYS, readAddress } from './config-entry.ts';
import { readResilience } from './config-resilience.ts';
import { secretsOf } from './config-secrets.ts';
import { unknownSetting } from './config-suggest.ts';
import { ConfigError, oddKeys, parseObject, readText } from './config-text.ts';
import { expand, type VariableUse } from './config-variables.ts';
import type { PrefixMode } from './naming.ts';
import type { UpstreamConfig } from './types.ts';

/** What the gateway can be told in a file, with every default filled in. */
export interface GatewayConfig {
  /** Those that are not disabled, in the order of the file. */
  readonly upstreams: readonly UpstreamConfig[];
  /** Names of those that are. */
  readonly disabled: readonly string[];
  /** By which the gateway introduces itself. Default `mcp-resilience`. */
  readonly name: string;
  /** When names get their upstream's name in front. Default `auto`: where they collide. */
  readonly prefix: PrefixMode;
  /** Between the two. Default `__`. */
  readonly separator: string;
  /** Whether an upstream that does not come up ends the start. Default false. */
  readonly strict: boolean;
  /** Whether the gateway offers `health_check`. Default true. */
  readonly healthTool: boolean;
  readonly http: HttpSettings;
  /** Who may call over HTTP. Absent: whoever can reach the door. */
  readonly auth?: AuthSettings;
  /** The variables that it names. */
  readonly variables: readonly VariableUse[];
  /** What is allowed and yet may not be what was meant. */
  readonly notices: readonly string[];
}

/** Where a configuration comes from. */
export interface ConfigSource {
  /** Of the file, for errors. */
  readonly name: string;
  /** Where variables are looked up. Absent: texts are taken as they stand. */
  readonly env?: Readonly<Record<string, string | undefined>>;
}

const LISTS = ['mcpServers', 'servers'] as const;
const SERVER_NAME = /^[A-Za-z0-9_.-]{1,64}$/;
const SEPARATOR = /^[A-Za-z0-9_.-]{1,8}$/;
const PREFIX_MODES: readonly PrefixMode[] = ['auto', 'always', 'never'];
const GATEWAY_SETTINGS = ['name', 'prefix', 'separator', 'strict', 'healthTool', 'http', 'auth'];
const DEFAULT_NAME = 'mcp-resilience';

type Entry = Readonly<Record<string, unknown>>;

/** What reading collects on its way. */
interface Reading {
  readonly source: ConfigSource;
  readonly problems: string[];
  readonly notices: string[];
  readonly variables: VariableUse[];
}

const expander = (reading: Reading, values: Set<string>) => (value: unknown, path: string) =>
  expand(value, path, {
    env: reading.source.env,
    problems: reading.problems,
    uses: reading.variables,
    values,
  });

/** How long clients let a request to this server take, where the entry says so. */
const readTimeout = (value: unknown, path: string, reading: Reading): number | undefined => {
  if (value === undefined || value === null) return undefined;
  if (typeof value !== 'number' || !(value >= 1 && value <= DAY)) {
    reading.problems.push(`${path} must be a number from 1 to ${DAY} (ms)`);
    return undefined;
  }
  if (value < 1_000) {
    reading.notices.push(
      `${path} is ${value} ms; some clients write seconds here, in which case ${value * 1_000} is meant`,
    );
  }
  return value;
};

const readUpstream = (
  name: string,
  entry: Entry,
  path: string,
  reading: Reading,
): UpstreamConfig | undefined => {
  const { problems, notices } = reading;
  const values = new Set<string>();
  const expanded = expander(reading, values);
  const before = problems.length;
  const known = Object.fromEntries(
    ADDRESS_KEYS.filter((key) => entry[key] !== undefined).map((key) => [
      key,
      expanded(entry[key], `${path}.${key}`),
    ]),
  );
  // A variable that is not set says so; what is wrong without its value is no news.
  const address = problems.length === before ? readAddress(known, path, problems) : undefined;
  const timeout = readTimeout(entry.timeout, `${path}.timeout`, reading);
  const block = expanded(entry.resilience, `${path}.resilience`);
  const resilience = readResilience(block, timeout, `${path}.resilience`, problems);
  if (entry.envFile !== undefined) {
    notices.push(`${path}.envFile is not read; set its variables before the gateway starts`);
  }
  return address && { name, address, ...resilience, secrets: secretsOf(address, values) };
};

interface Upstreams {
  readonly upstreams: UpstreamConfig[];
  readonly disabled: string[];
}

const readList = (list: string, value: unknown, into: Upstreams, reading: Reading): void => {
  const { problems } = reading;
  if (!isObject(value)) {
    problems.push(`${list} must be an object of servers by their names`);
    return;
  }
  for (const [name, entry] of Object.entries(value)) {
    const path = `${list}.${name.slice(0, 80)}`;
    if (!SERVER_NAME.test(name)) {
      problems.push(
        `${path}: the name of a server must have 1 to 64 characters of A-Z, a-z, 0-9, "_", "." and "-"; ` +
          'it may stand in front of the names of its tools',
      );
    } else if (!isObject(entry)) {
      problems.push(`${path} must be an object with a command or a url`);
    } else if (into.upstreams.some((other) => other.name === name)) {
      problems.push(`${path} is a name that stands in mcpServers already; give it another`);
    } else if (entry.disabled === true || entry.enabled === false) {
      into.disabled.push(name);
    } else {
      const upstream = readUpstream(name, entry, path, reading);
      if (upstream) into.upstreams.push(upstream);
    }
  }
};

const readServers = (file: Entry, reading: Reading): Upstreams => {
  const found: Upstreams = { upstreams: [], disabled: [] };
  const lists = LISTS.filter((list) => file[list] !== undefined);
  const before = reading.problems.length;
  for (const list of lists) readList(list, file[list], found, reading);
  if (lists.length === 0) {
    reading.problems.push(
      'mcpServers (or servers) must be given: the servers to stand in front of',
    );
  } else if (found.upstreams.length === 0 && reading.problems.length === before) {
    const why = found.disabled.length > 0 ? 'all of its servers are disabled' : 'it is empty';
    reading.problems.push(`${lists.join(' and ')} must name a server: ${why}`);
  }
  return found;
};

type GatewayBlock = Omit<GatewayConfig, 'upstreams' | 'disabled' | 'variables' | 'notices'>;

const readGateway = (value: unknown, reading: Reading): GatewayBlock => {
  const { problems } = reading;
  const path = 'gateway';
  if (value !== undefined && !isObject(value)) problems.push(`${path} must be an object`);
  const given = isObject(value) ? value : {};
  for (const key of Object.keys(given)) {
    if (!GATEWAY_SETTINGS.includes(key)) problems.push(unknownSetting(path, key, GATEWAY_SETTINGS));
  }
  const block = expander(reading, new Set())(given, path) as Entry;
  const { name = DEFAULT_NAME, prefix = 'auto', separator = '__', strict = false } = block;
  const { healthTool = true, http = {}, auth } = block;
  if (typeof name !== 'string' || name.trim() === '' || name.length > 64) {
    problems.push(`${path}.name must be a text of 1 to 64 characters`);
  }
  if (!PREFIX_MODES.some((mode) => mode === prefix)) {
    problems.push(`${path}.prefix must be one of "auto", "always", "never"`);
  }
  if (typeof separator !== 'string' || !SEPARATOR.test(separator)) {
    problems.push(
      `${path}.separator must have 1 to 8 characters of A-Z, a-z, 0-9, "_", "." and "-"`,
    );
  }
  for (const [key, value] of Object.entries({ strict, healthTool })) {
    if (typeof value !== 'boolean') problems.push(`${path}.${key} must be true or false`);
  }
  if (isObject(http) && http.auth !== undefined) {
    // Where the reference server has it.
    problems.push(`${path}.http.auth is not a setting; did you mean "${path}.auth"?`);
  } else {
    checkSettings(httpSettingsSchema, http, `${path}.http`, problems);
  }
  if (auth !== undefined) checkSettings(authSettingsSchema, auth, `${path}.auth`, problems);
  return {
    name: String(name),
    prefix: prefix as PrefixMode,
    separator: String(separator),
    strict: strict === true,
    healthTool: healthTool !== false,
    http: http as HttpSettings,
    ...(auth !== undefined && { auth: auth as AuthSettings }),
  };
};

/**
 * The configuration that an object holds: of a file, or made from the flags of a command.
 *
 * @throws ConfigError with every problem found
 */
export const readGatewayConfig = (
  file: Entry,
  source: ConfigSource,
  problems: string[] = [],
): GatewayConfig => {
  const reading: Reading = { source, problems, notices: [], variables: [] };
  const servers = readServers(file, reading);
  const gateway = readGateway(file.gateway, reading);
  if (problems.length > 0) throw new ConfigError(source.name, [...new Set(problems)]);
  const { notices, variables } = reading;
  return { ...servers, ...gateway, variables, notices };
};

/**
 * Reads a configuration.
 *
 * @throws ConfigError with every problem found: syntax first, since nothing else can be read
 *
 * @example
 * ```ts
 * const text = '{ "mcpServers": { "files": { "command": "npx", "args": ["-y", "some-server"] } } }';
 * const { upstreams } = parseGatewayConfig(text, { name: 'mcp.json', env: process.env });
 * ```
 */
export const parseGatewayConfig = (text: string, source: ConfigSource): GatewayConfig => {
  const file = parseObject(text, source.name);
  const read: readonly string[] = [...LISTS, 'gateway'];
  const problems = oddKeys(text, ([top = '']) => read.includes(top));
  return readGatewayConfig(file, source, problems);
};

/**
 * Reads the configuration file.
 *
 * @throws ConfigError when it cannot be read or used
 */
export const loadGatewayConfig = (file: string, env: ConfigSource['env'] = {}): GatewayConfig =>
  parseGatewayConfig(readText(file), { name: file, env });
