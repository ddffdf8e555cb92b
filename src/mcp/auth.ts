/**
 * @module
 * Who may call the HTTP door: it is an OAuth 2.1 resource server that takes bearer tokens and
 * says where to get them (2025-11-25, basic/authorization; RFC 6750, RFC 8707, RFC 9728).
 * What was wrong with a token is told to nobody, and the token goes nowhere: not into a log, a
 * span or an error, not to a handler, and not to another server.
 */
import type { IncomingMessage } from 'node:http';
import type { AuthInfo } from '@modelcontextprotocol/sdk/server/auth/types.js';
import { type Clock, systemClock } from '../resilience/clock.ts';
import { createPipeline } from '../resilience/pipeline.ts';
import type { PipelineRegistry } from '../resilience/registry.ts';
import { SettingsError } from '../resilience/settings.ts';
import { type CheckToken, jwtCheck } from './auth-jwt.ts';
import { fileKeys, KeysUnavailableError, keysPolicy, remoteKeys } from './auth-keys.ts';
import {
  type AuthSettings,
  authSettingsSchema,
  type JwtSettings,
  type ResolvedAuthSettings,
} from './auth-settings.ts';
import { tokenCheck } from './auth-tokens.ts';
import { checkSettings } from './settings-problems.ts';
import { type Refusal, retryAfter } from './transports/http-answer.ts';

/** What the authentication of a door needs beside its settings. */
export interface AuthenticatorOptions {
  /** Holds the static tokens. Default: it is empty. */
  readonly env?: Readonly<Record<string, string | undefined>>;
  /** Path of the MCP endpoint. Default `/mcp`. */
  readonly path?: string;
  /** Where the pipeline of the key set is made, as `auth.jwks`. Default: it stands alone. */
  readonly pipelines?: PipelineRegistry;
  readonly clock?: Clock;
  /**
   * Takes lines for people, without a line break: that keys cannot be had, and why; one a minute at
   * most. Default: nobody is told.
   */
  readonly log?: (line: string) => void;
}

/** The authentication of one door: two options of `serveHttp`, and the end of what it holds. */
export interface Authenticator {
  /** Who calls; or the refusal. */
  authenticate(req: IncomingMessage): Promise<AuthInfo | Refusal>;
  /** Documents that tell clients where to get tokens (RFC 9728), by their paths. */
  readonly documents: Readonly<Record<string, object>>;
  /** Ends its pipeline, unless that is in the registry. */
  close(): void;
}

const WELL_KNOWN = '/.well-known/oauth-protected-resource';
/** RFC 6750, section 2.1. */
const BEARER = /^bearer +([\w.~+/-]+=*) *$/i;
const LONGEST_TOKEN = 16 * 1024;

/** RFC 9728, section 3.1: the well-known part goes between host and path. */
const metadataUrl = (resource: string): string => {
  const { origin, pathname, search } = new URL(resource);
  return `${origin}${WELL_KNOWN}${pathname === '/' ? '' : pathname}${search}`;
};

/** The header that says what is missing (RFC 6750, section 3; RFC 9728, section 5.1). */
const challengeOf = ({ resource, jwt, scopes }: ResolvedAuthSettings) => {
  const hasMetadata = resource !== undefined && jwt !== undefined;
  return (error?: 'invalid_request' | 'invalid_token' | 'insufficient_scope') => {
    const parts = [
      ...(error ? [`error="${error}"`] : []),
      ...(scopes.length > 0 ? [`scope="${scopes.join(' ')}"`] : []),
      ...(hasMetadata ? [`resource_metadata="${metadataUrl(resource)}"`] : []),
    ];
    return { 'www-authenticate': parts.length > 0 ? `Bearer ${parts.join(', ')}` : 'Bearer' };
  };
};

/** True for a token in the URL, where logs, histories and referrers would keep it. */
const hasTokenInUrl = ({ url = '' }: IncomingMessage): boolean => {
  const query = url.indexOf('?');
  return query >= 0 && new URLSearchParams(url.slice(query)).has('access_token');
};

type Credential = { readonly token: string } | 'missing' | 'malformed';

const credentialOf = (req: IncomingMessage): Credential => {
  if (hasTokenInUrl(req)) return 'malformed';
  const headers = req.headersDistinct.authorization ?? [];
  const [header = ''] = headers;
  if (headers.length > 1 || header.length > LONGEST_TOKEN) return 'malformed';
  if (!/^bearer( |$)/i.test(header)) return 'missing';
  const [, token] = BEARER.exec(header) ?? [];
  return token === undefined ? 'malformed' : { token };
};

const documentsOf = (settings: ResolvedAuthSettings, path: string): Record<string, object> => {
  const { resource, jwt, authorizationServers, scopes } = settings;
  if (resource === undefined || jwt === undefined) return {};
  const document = {
    resource,
    authorization_servers: authorizationServers ?? [jwt.issuer],
    ...(scopes.length > 0 && { scopes_supported: scopes }),
    bearer_methods_supported: ['header'],
  };
  // As the client builds it from the URL that it knows, and for those that only look at the root.
  const { pathname } = new URL(metadataUrl(resource));
  return Object.fromEntries(
    [WELL_KNOWN, `${WELL_KNOWN}${path}`, pathname].map((each) => [each, document]),
  );
};

/**
 * Makes the authentication of a door.
 *
 * @throws SettingsError for settings that are wrong, a variable that holds no token, and a key
 * file that cannot be used; all at once
 *
 * @example
 * ```ts
 * const { authenticate, documents } = createAuthenticator({
 *   resource: 'https://mcp.example/mcp',
 *   scopes: ['mcp:tools'],
 *   jwt: { issuer: 'https://login.example' },
 * });
 * const door = await serveHttp({ createServer, port: 3000, authenticate, documents });
 * ```
 */
export const createAuthenticator = (
  given: AuthSettings,
  options: AuthenticatorOptions = {},
): Authenticator => {
  const { env = {}, path = '/mcp', pipelines, clock = systemClock, log = () => {} } = options;
  const problems: string[] = [];
  if (!checkSettings(authSettingsSchema, given, 'auth', problems))
    throw new SettingsError(problems);
  const settings = authSettingsSchema.parse(given);
  const { jwt, tokens, scopes, resource = '' } = settings;
  const tried = <T>(make: () => T): T | undefined => {
    try {
      return make();
    } catch (error) {
      problems.push(`auth: ${error instanceof Error ? error.message : String(error)}`);
      return undefined;
    }
  };
  const checkStatic = tried(() => tokenCheck(tokens, scopes, env));
  let close = (): void => {};
  const keysOf = (settings: JwtSettings) => {
    const { jwksFile } = settings;
    if (jwksFile !== undefined) return fileKeys(jwksFile, settings, clock);
    const policy = keysPolicy(settings);
    const pipeline = pipelines
      ? pipelines.create('auth.jwks', policy)
      : createPipeline('auth.jwks', policy, { clock });
    if (!pipelines) close = () => pipeline.destroy();
    return remoteKeys(settings, pipeline, clock, log);
  };
  const keys = jwt && tried(() => keysOf(jwt));
  if (problems.length > 0) {
    close();
    throw new SettingsError(problems);
  }
  const checkJwt: CheckToken | undefined = jwt && keys && jwtCheck(jwt, resource, keys, clock);
  const challenge = challengeOf(settings);

  const authenticate = async (req: IncomingMessage): Promise<AuthInfo | Refusal> => {
    const credential = credentialOf(req);
    if (credential === 'missing') {
      const message = 'Unauthorized: send Authorization: Bearer with an access token';
      return { status: 401, message, headers: challenge() };
    }
    if (credential === 'malformed') {
      const message = 'Bad Request: send one access token, in one header: Authorization: Bearer';
      return { status: 400, message, headers: challenge('invalid_request') };
    }
    const { token } = credential;
    let found: AuthInfo | undefined;
    try {
      found = (await checkStatic?.(token)) ?? (await checkJwt?.(token));
    } catch (error) {
      if (!(error instanceof KeysUnavailableError)) throw error;
      const message =
        'Service Unavailable: access tokens cannot be checked at the moment; try again';
      const { retryAfter: seconds = 5 } = error.failure;
      return { status: 503, message, headers: retryAfter(seconds * 1_000) };
    }
    if (found === undefined) {
      const message = 'Unauthorized: the access token is not valid for this server; get a new one';
      return { status: 401, message, headers: challenge('invalid_token') };
    }
    const granted = found.scopes;
    if (!scopes.every((scope) => granted.includes(scope))) {
      const message = `Forbidden: the access token must have the scopes ${scopes.join(' ')}`;
      return { status: 403, message, headers: challenge('insufficient_scope') };
    }
    return found;
  };
  return { authenticate, documents: documentsOf(settings, path), close: () => close() };
};
