import { once } from 'node:events';
import { request } from 'node:http';
import {
  discoverOAuthProtectedResourceMetadata,
  extractWWWAuthenticateParams,
} from '@modelcontextprotocol/sdk/client/auth.js';
import { Server } from '@modelcontextprotocol/sdk/server/index.js';
import { ListToolsRequestSchema } from '@modelcontextprotocol/sdk/types.js';
import fc from 'fast-check';
import { describe, expect, onTestFinished, test } from 'vitest';
import { createAuthenticator } from '../../src/mcp/auth.ts';
import { type AuthSettings, authSettingsSchema } from '../../src/mcp/auth-settings.ts';
import { describeSettings } from '../../src/mcp/settings-problems.ts';
import type { HttpDoor, ServeHttpOptions } from '../../src/mcp/transports/http.ts';
import { SettingsError } from '../../src/resilience/settings.ts';
import { answer, startUpstream } from '../fixtures/upstream.ts';
import { verifies } from '../fixtures/verifies.ts';
import { initialize, openDoor, openSession, post, rpc } from './support/door.ts';
import { startIssuer } from './support/issuer.ts';

const env = { ANNA: 'anna-anna-anna-anna', BERT: 'bert-bert-bert-bert' };
const bearer = (token: string) => ({ authorization: `Bearer ${token}` });
const anna = bearer(env.ANNA);
const bert = bearer(env.BERT);

const both: AuthSettings = {
  tokens: [
    { principal: 'anna', env: 'ANNA' },
    { principal: 'bert', env: 'BERT' },
  ],
};

const authDoor = async (auth: AuthSettings, options: Partial<ServeHttpOptions> = {}) => {
  const authenticator = createAuthenticator(auth, { env });
  onTestFinished(() => authenticator.close());
  const { authenticate, documents } = authenticator;
  return openDoor({ authenticate, documents, ...options });
};

const challengeOf = (response: Response) => [
  response.status,
  response.headers.get('www-authenticate'),
];

/** A POST with headers that fetch would not send: any number of each. */
const rawPost = async (door: HttpDoor, headers: readonly (readonly [string, string])[]) => {
  const req = request(door.url, { method: 'POST' });
  for (const name of new Set(headers.map(([each]) => each))) {
    req.setHeader(
      name,
      headers.filter(([each]) => each === name).map(([, value]) => value),
    );
  }
  req.end('{}');
  const [res] = await once(req, 'response');
  res.resume();
  return [res.statusCode, res.headers['www-authenticate']];
};

describe('a door with authentication', () => {
  verifies('auth.challenge', async () => {
    const { issuer, jwksUri } = await startIssuer();
    const resource = 'https://mcp.example/team/mcp';
    const jwt = { issuer, jwksUri };
    const { door } = await authDoor({ resource, jwt, scopes: ['mcp:tools'] });
    const metadata =
      'scope="mcp:tools", resource_metadata="https://mcp.example/.well-known/oauth-protected-resource/team/mcp"';
    expect(challengeOf(await post(door, initialize()))).toEqual([401, `Bearer ${metadata}`]);
    expect(challengeOf(await post(door, initialize(), bearer('x')))).toEqual([
      401,
      `Bearer error="invalid_token", ${metadata}`,
    ]);
    // Another scheme is as good as none.
    const basic = { authorization: 'Basic YTpi' };
    expect(challengeOf(await post(door, initialize(), basic))).toEqual([401, `Bearer ${metadata}`]);
    const { door: plain } = await authDoor(both);
    expect(challengeOf(await post(plain, initialize()))).toEqual([401, 'Bearer']);
    for (const method of ['GET', 'DELETE', 'PUT']) {
      expect((await fetch(plain.url, { method })).status).toBe(401);
    }
    // What says nothing of anybody needs no token.
    for (const path of ['/healthz', '/readyz']) {
      expect((await fetch(new URL(path, plain.url))).status).toBe(200);
    }
  });

  verifies('auth.metadata', async () => {
    const issuer = await startIssuer();
    const documents: Record<string, object> = {};
    const { door } = await openDoor({ documents, authenticate: (req) => check(req) });
    // Only now the door knows by which name it can be called.
    const resource = door.url;
    const jwt = { issuer: issuer.issuer, jwksUri: issuer.jwksUri };
    const authenticator = createAuthenticator({ resource, jwt, scopes: ['mcp:tools'] });
    onTestFinished(() => authenticator.close());
    Object.assign(documents, authenticator.documents);
    const check: NonNullable<ServeHttpOptions['authenticate']> = authenticator.authenticate;

    const refused = await post(door, initialize());
    const { resourceMetadataUrl, scope } = extractWWWAuthenticateParams(refused);
    expect([String(resourceMetadataUrl), scope]).toEqual([
      `${new URL(door.url).origin}/.well-known/oauth-protected-resource/mcp`,
      'mcp:tools',
    ]);
    const expected = {
      resource,
      authorization_servers: [issuer.issuer],
      scopes_supported: ['mcp:tools'],
      bearer_methods_supported: ['header'],
    };
    expect(await discoverOAuthProtectedResourceMetadata(door.url)).toEqual(expected);
    const root = await fetch(new URL('/.well-known/oauth-protected-resource', door.url));
    expect([root.status, root.headers.get('content-type'), await root.json()]).toEqual([
      200,
      'application/json',
      expected,
    ]);
    const posted = await fetch(root.url, { method: 'POST' });
    expect([posted.status, posted.headers.get('allow')]).toEqual([405, 'GET']);
    expect((await fetch(`${root.url}/other`)).status).toBe(404);
    const token = await issuer.token({ aud: resource, scope: 'mcp:tools' });
    expect((await post(door, initialize(), bearer(token))).status).toBe(200);
  });

  test('metadata of a resource at the root, with authorization servers that are named', () => {
    const { documents } = createAuthenticator(
      {
        resource: 'https://mcp.example',
        authorizationServers: ['https://a.example', 'https://b.example/tenant'],
        jwt: { issuer: 'urn:tenant:7', jwksUri: 'https://a.example/jwks' },
      },
      { path: '/all' },
    );
    const document = {
      resource: 'https://mcp.example',
      authorization_servers: ['https://a.example', 'https://b.example/tenant'],
      bearer_methods_supported: ['header'],
    };
    expect(documents).toEqual({
      '/.well-known/oauth-protected-resource': document,
      '/.well-known/oauth-protected-resource/all': document,
    });
  });

  verifies('auth.header-only', async () => {
    const { door } = await authDoor(both);
    const inUrl = { url: `${door.url}?access_token=${env.ANNA}` };
    for (const headers of [{}, anna]) {
      const response = await post(inUrl, initialize(), headers);
      expect(challengeOf(response)).toEqual([400, 'Bearer error="invalid_request"']);
      expect(await response.text()).not.toContain(env.ANNA);
    }
    const invalid = [400, 'Bearer error="invalid_request"'];
    const header = ['authorization', anna.authorization] as const;
    expect(await rawPost(door, [header, header])).toEqual(invalid);
    for (const value of ['Bearer', 'Bearer ', 'Bearer a b', 'Bearer "x"', 'Bearer é']) {
      expect([value, await rawPost(door, [['authorization', value]])]).toEqual([value, invalid]);
    }
    // The scheme is compared without case (RFC 9110, section 11.1).
    const lower = { authorization: `bearer ${env.ANNA}` };
    expect((await post(door, initialize(), lower)).status).toBe(200);
  });

  verifies('auth.session-bound', async () => {
    const { door } = await authDoor(both);
    const opened = await post(door, initialize(), anna);
    const session = { 'mcp-session-id': opened.headers.get('mcp-session-id') ?? '' };
    await opened.body?.cancel();
    const stream = { accept: 'text/event-stream' };
    const tries = {
      use: () => post(door, rpc(1, 'ping'), { ...session, ...bert }),
      notify: () => post(door, { jsonrpc: '2.0', method: 'x' }, { ...session, ...bert }),
      listen: () => fetch(door.url, { headers: { ...session, ...bert, ...stream } }),
      end: () => fetch(door.url, { method: 'DELETE', headers: { ...session, ...bert } }),
    };
    for (const [what, attempt] of Object.entries(tries)) {
      const response = await attempt();
      // As if it did not exist.
      expect([what, response.status, await response.json()]).toMatchObject([
        what,
        404,
        { error: { message: 'Session not found' } },
      ]);
    }
    expect((await post(door, rpc(1, 'ping'), session)).status).toBe(401);
    expect((await post(door, rpc(1, 'ping'), { ...session, ...anna })).status).toBe(200);
    const end = await fetch(door.url, { method: 'DELETE', headers: { ...session, ...anna } });
    expect(end.status).toBe(204);
  });

  test('nothing that anybody sends in the header gets in or breaks the door', async () => {
    const issuer = await startIssuer();
    const jwt = { issuer: issuer.issuer, jwksUri: issuer.jwksUri };
    const { door } = await authDoor({ ...both, resource: 'https://mcp.example/mcp', jwt });
    const [header = '', payload = '', signature = ''] = (await issuer.token({ exp: 1 })).split('.');
    const part = fc.oneof(
      fc.constantFrom(header, payload, signature, ''),
      fc.base64String().map((text) => text.replaceAll('=', '')),
      fc.json().map((text) => Buffer.from(text).toString('base64url')),
    );
    const token = fc.oneof(
      fc.array(part, { minLength: 1, maxLength: 6 }).map((parts) => parts.join('.')),
      fc.stringMatching(/^[ -~]{0,60}$/),
    );
    const scheme = fc.constantFrom('Bearer ', 'bearer ', 'Bearer  ', 'Basic ', '');
    await fc.assert(
      fc.asyncProperty(scheme, token, async (how, what) => {
        const response = await post(door, initialize(), { authorization: `${how}${what}` });
        await response.body?.cancel();
        expect([400, 401]).toContain(response.status);
      }),
      { numRuns: 300 },
    );
  });

  test('a session outlives the token that it was opened with, but not its principal', async () => {
    const issuer = await startIssuer();
    const resource = 'https://mcp.example/mcp';
    const jwt = { issuer: issuer.issuer, jwksUri: issuer.jwksUri };
    const auth: AuthSettings = { resource, jwt, tokens: [{ principal: 'anna', env: 'ANNA' }] };
    const { door } = await authDoor(auth);
    const opened = await post(door, initialize(), bearer(await issuer.token({ jti: '1' })));
    const session = { 'mcp-session-id': opened.headers.get('mcp-session-id') ?? '' };
    await opened.body?.cancel();
    const ping = async (token: string) =>
      (await post(door, rpc(1, 'ping'), { ...session, ...bearer(token) })).status;
    expect(await ping(await issuer.token({ jti: '2' }))).toBe(200);
    // Another client of the same user is the same user.
    expect(await ping(await issuer.token({ client_id: 'other app' }))).toBe(200);
    expect(await ping(await issuer.token({ sub: 'bert' }))).toBe(404);
    // A static token of that name is somebody else, and nobody can take the name of one.
    expect(await ping(env.ANNA)).toBe(404);
    const hers = await post(door, initialize(), anna);
    session['mcp-session-id'] = hers.headers.get('mcp-session-id') ?? '';
    await hers.body?.cancel();
    expect(await ping(env.ANNA)).toBe(200);
    for (const sub of ['anna', 'static:anna', 'jwt:anna']) {
      expect(await ping(await issuer.token({ sub }))).toBe(404);
    }
  });

  verifies('auth.limit', async () => {
    const rateLimit = { limit: 1, interval: 60_000, burst: 3 };
    const { door } = await authDoor(both, { rateLimit });
    const status = async (headers = {}) => (await post(door, rpc(1, 'ping'), headers)).status;
    // Without a session 400, but let in. All come from one address.
    expect([await status(anna), await status(anna), await status(anna)]).toEqual([400, 400, 400]);
    expect(await status(anna)).toBe(429);
    expect([await status(bert), await status(bert), await status(bert)]).toEqual([400, 400, 400]);
    expect(await status(bert)).toBe(429);
    expect([await status(), await status(bearer('x')), await status()]).toEqual([401, 401, 401]);
    expect([await status(), await status(bearer('x'))]).toEqual([429, 429]);
    const metadata = await fetch(new URL('/.well-known/oauth-protected-resource', door.url));
    expect(metadata.status).toBe(404);
  });

  verifies('auth.not-handed-on', async () => {
    const upstream = await startUpstream();
    onTestFinished(() => upstream.close());
    upstream.on('*', answer(200, {}));
    const seen: unknown[] = [];
    const createServer = () => {
      const server = new Server({ name: 'x', version: '1' }, { capabilities: { tools: {} } });
      server.setRequestHandler(ListToolsRequestSchema, async (_request, extra) => {
        seen.push(extra);
        // Somebody who passes on what a client sent.
        const headers = Object.entries(extra.requestInfo?.headers ?? {}).flatMap(([name, value]) =>
          typeof value === 'string' && !/^(host|connection|content|accept)/.test(name)
            ? [[name, value] as [string, string]]
            : [],
        );
        await fetch(upstream.url, { headers });
        return { tools: [] };
      });
      return server;
    };
    const { door } = await authDoor(both, { createServer });
    const opened = await post(door, initialize(), anna);
    const session = { 'mcp-session-id': opened.headers.get('mcp-session-id') ?? '' };
    await opened.body?.cancel();
    const listed = await post(door, rpc(1, 'tools/list'), { ...session, ...anna, 'x-mine': '1' });
    expect(await listed.json()).toMatchObject({ result: { tools: [] } });
    expect(seen).toMatchObject([
      { authInfo: { clientId: 'anna', token: '', extra: { principal: 'static:anna' } } },
    ]);
    expect(JSON.stringify(seen)).not.toContain(env.ANNA);
    expect(upstream.requests).toHaveLength(1);
    expect(upstream.requests[0]?.headers).toMatchObject({ 'x-mine': '1' });
    expect(upstream.requests[0]?.headers).not.toHaveProperty('authorization');
  });

  test('documents are behind the checks of Host and Origin, and of nothing else', async () => {
    const { door } = await openDoor({ documents: { '/about': { a: 1 } } });
    const about = new URL('/about', door.url);
    expect(await (await fetch(about)).json()).toEqual({ a: 1 });
    const head = await fetch(about, { method: 'HEAD' });
    expect([head.status, await head.text()]).toEqual([200, '']);
    const foreign = await fetch(about, { headers: { origin: 'https://evil.example' } });
    expect(foreign.status).toBe(403);
    for (const path of ['/toString', '/__proto__', '/about/']) {
      expect((await fetch(new URL(path, door.url))).status).toBe(404);
    }
    expect(await openSession(door)).toHaveProperty('mcp-session-id');
  });
});

describe('settings', () => {
  const problemsOf = (settings: unknown): readonly string[] => {
    try {
      createAuthenticator(settings as AuthSettings, { env }).close();
    } catch (error) {
      if (!(error instanceof SettingsError)) throw error;
      return error.problems;
    }
    return [];
  };
  const resource = 'https://mcp.example/mcp';
  const issuer = 'https://login.example';
  const jwksUri = 'https://login.example/jwks.json';
  const url = 'an https URL (http for this machine only), without user name, password and "#"';

  verifies('auth.settings', () => {
    expect(problemsOf({})).toEqual([
      'auth must have jwt, tokens or both: without any nobody could call',
    ]);
    expect(problemsOf({ tokens: [] })).toHaveLength(1);
    expect(problemsOf(true)).toEqual(['auth must be an object, got true']);
    expect(problemsOf({ jwt: { issuer, jwksUri } })).toEqual([
      'auth.resource must be given with jwt: the URL by which clients know this server',
    ]);
    expect(problemsOf({ resource, jwt: { issuer } })).toEqual([]);
    expect(problemsOf({ resource, jwt: { issuer, jwksUri, jwksFile: 'x' } })).toEqual([
      'auth.jwt must not have both jwksUri and jwksFile',
    ]);
    // Metadata can be found for a URL alone, and by nobody who can change them on their way.
    for (const wrong of ['http://login.example', `${issuer}/?tenant=1`, `${issuer}?`]) {
      const authorizationServers = [issuer];
      expect(problemsOf({ resource, authorizationServers, jwt: { issuer: wrong } })).toEqual([
        `auth.jwt.issuer must be an https URL (http for this machine only), without user name, password, "?" and "#", where neither jwksUri nor jwksFile is given`,
      ]);
    }
    for (const wrong of [
      'http://mcp.example/mcp',
      'mcp.example',
      'https://me:pw@mcp.example',
      'https://mcp.example/#x',
      'ftp://mcp.example',
      7,
    ]) {
      const jwt = { issuer, jwksUri: wrong };
      expect(problemsOf({ resource: wrong, jwt })).toEqual([
        expect.stringContaining(`auth.resource must be ${url}`),
        expect.stringContaining(`auth.jwt.jwksUri must be ${url}`),
      ]);
    }
    // What is only for this machine needs no certificate.
    for (const local of ['http://127.0.0.1:9/mcp', 'http://localhost/mcp', 'http://[::1]:9/mcp']) {
      expect(problemsOf({ resource: local, jwt: { issuer, jwksUri: local } })).toEqual([]);
    }
    for (const alg of ['none', 'HS256', 'RS1', '']) {
      expect(problemsOf({ resource, jwt: { issuer, jwksUri, algorithms: [alg] } })[0]).toMatch(
        /^auth\.jwt\.algorithms\.0 must be one of "RS256", .*"ES256".*, got "/,
      );
    }
    expect(problemsOf({ resource, jwt: { issuer, jwksUri, algoritms: [], audience: [] } })).toEqual(
      [
        expect.stringMatching(/^auth\.jwt\.audience must be a list, /),
        expect.stringMatching(
          /^auth\.jwt\.algoritms is not a setting; known are issuer, jwksUri, /,
        ),
      ],
    );
    expect(problemsOf({ resource, jwt: { issuer: 'urn:x', jwksUri } })).toEqual([
      'auth.authorizationServers must be given when the issuer of tokens is no https URL',
    ]);
    const digest = '0'.repeat(64);
    const oneOfTwo = 'must have exactly one of env and sha256';
    expect(
      problemsOf({
        tokens: [{ principal: 'a' }, { principal: 'b', env: 'ANNA', sha256: digest }],
      }),
    ).toEqual([`auth.tokens.0 ${oneOfTwo}`, `auth.tokens.1 ${oneOfTwo}`]);
    expect(
      problemsOf({
        tokens: [
          { principal: 'a', sha256: digest },
          { principal: 'a', sha256: digest },
        ],
      }),
    ).toEqual(['auth.tokens must not name a principal twice']);
    expect(problemsOf({ tokens: [{ principal: '', sha256: 'zz' }] })).toHaveLength(2);
    expect(problemsOf({ ...both, scopes: ['a b'] })[0]).toMatch(/^auth\.scopes\.0 must be a scope/);
    // A token in the file itself is a mistake that should not pass in silence.
    expect(problemsOf({ tokens: [{ principal: 'a', token: env.ANNA }] })[0]).toMatch(
      /^auth\.tokens\.0\.token is not a setting; known are principal, env, sha256, scopes$/,
    );
  });

  test('every setting of the numbers is checked', () => {
    const numbers = describeSettings(authSettingsSchema).filter(({ allowed }) =>
      allowed.startsWith('a whole number'),
    );
    expect(numbers.map(({ name }) => name)).toEqual([
      'jwt.clockTolerance',
      'jwt.timeout',
      'jwt.cooldown',
      'jwt.maxAge',
      'jwt.staleIfError',
    ]);
    for (const { name, allowed } of numbers) {
      const jwt = { issuer, jwksUri, [name.slice(4)]: -1 };
      expect(problemsOf({ resource, jwt })).toEqual([`auth.${name} must be ${allowed}, got -1`]);
    }
  });
});
