import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { generateSecret, SignJWT, UnsecuredJWT } from 'jose';
import { afterEach, describe, expect, onTestFinished, test, vi } from 'vitest';
import { createAuthenticator } from '../../src/mcp/auth.ts';
import type { AuthSettings } from '../../src/mcp/auth-settings.ts';
import type { ServeHttpOptions } from '../../src/mcp/transports/http.ts';
import { PipelineRegistry } from '../../src/resilience/registry.ts';
import { temporaryFolder } from '../fixtures/command.ts';
import { closedPort } from '../fixtures/loopback.ts';
import { verifies } from '../fixtures/verifies.ts';
import { initialize, openDoor, post } from './support/door.ts';
import { type Issuer, makeKey, RESOURCE, startIssuer } from './support/issuer.ts';

type Jwt = NonNullable<AuthSettings['jwt']>;

const MINUTE = 60_000;

const jwtOf = ({ issuer, jwksUri }: Issuer, more: Partial<Jwt> = {}): AuthSettings => ({
  resource: RESOURCE,
  jwt: { issuer, jwksUri, ...more },
});

/** A door with authentication. `ask` gives status, challenge and text of what it answers a token. */
const authDoor = async (auth: AuthSettings, options: Partial<ServeHttpOptions> = {}) => {
  const authenticator = createAuthenticator(auth);
  onTestFinished(() => authenticator.close());
  const { authenticate, documents } = authenticator;
  const { door } = await openDoor({ authenticate, documents, ...options });
  const ask = async (token: string | undefined, headers: Record<string, string> = {}) => {
    const authorization = token === undefined ? {} : { authorization: `Bearer ${token}` };
    const response = await post(door, initialize(), { ...authorization, ...headers });
    return {
      status: response.status,
      challenge: response.headers.get('www-authenticate'),
      retryAfter: response.headers.get('retry-after'),
      body: await response.text(),
    };
  };
  return { door, ask };
};

afterEach(() => {
  vi.useRealTimers();
});

/** Moves the calendar; timers stay real. */
const later = (ms: number): void => {
  const now = Date.now();
  vi.useFakeTimers({ toFake: ['Date'], now: now + ms });
};

describe('tokens that an authorization server signed', () => {
  verifies('auth.jwt', async () => {
    const issuer = await startIssuer();
    const { ask } = await authDoor(jwtOf(issuer));
    const now = Math.floor(Date.now() / 1_000);
    const taken = {
      'as it should be': await issuer.token(),
      'for several, this server among them': await issuer.token({ aud: ['x', RESOURCE] }),
      'ended within the tolerance': await issuer.token({ exp: now - 2 }),
      'a client that acts for itself': await issuer.token({ sub: undefined }),
      'without the name of its key': await issuer.token(
        {},
        { header: { kid: undefined } as never },
      ),
    };
    for (const [what, token] of Object.entries(taken)) {
      expect([what, (await ask(token)).status]).toEqual([what, 200]);
    }
    expect(issuer.state.fetches).toBe(1);

    const other = await makeKey('first');
    const rsa = await makeKey('first', 'RS256');
    const good = await issuer.token();
    const [header = '', payload = '', signature = ''] = good.split('.');
    const forged = Buffer.from(JSON.stringify({ ...JSON.parse(atob(payload)), sub: 'root' }));
    // The public key as a shared secret: what HS256 beside keys would let through.
    const publicKey = new TextEncoder().encode(JSON.stringify(issuer.first.jwk));
    const claims = { iss: issuer.issuer, aud: RESOURCE, sub: 'anna', exp: now + 300 };
    const refused = {
      ended: await issuer.token({ exp: now - 60 }),
      'not yet begun': await issuer.token({ nbf: now + 60 }),
      'without an end': await issuer.token({ exp: undefined }),
      'of another issuer': await issuer.token({ iss: 'https://evil.example' }),
      'of the issuer with a slash': await issuer.token({ iss: `${issuer.issuer}/` }),
      'for another server': await issuer.token({ aud: 'https://other.example/mcp' }),
      'for a longer path': await issuer.token({ aud: `${RESOURCE}/x` }),
      'for nobody': await issuer.token({ aud: undefined }),
      'of nobody': await issuer.token({ sub: undefined, client_id: undefined }),
      'signed with another key': await issuer.token({}, { key: other }),
      'signed with another kind of key': await issuer.token({}, { key: rsa }),
      'of an unknown key': await issuer.token({}, { header: { kid: 'nobody' } }),
      'changed after it was signed': `${header}.${forged.toString('base64url')}.${signature}`,
      'without its signature': `${header}.${payload}.`,
      unsigned: new UnsecuredJWT(claims).encode(),
      'signed with a secret': await new SignJWT(claims)
        .setProtectedHeader({ alg: 'HS256', kid: 'first' })
        .sign(publicKey),
      'signed with a random secret': await new SignJWT(claims)
        .setProtectedHeader({ alg: 'HS512' })
        .sign(await generateSecret('HS512')),
      'with an extension that must be understood': await new SignJWT(claims)
        .setProtectedHeader({ alg: 'ES256', kid: 'first', crit: ['vendor'], vendor: 1 })
        .sign(issuer.first.privateKey, { crit: { vendor: true } }),
      'no JWT at all': 'opaque-token',
      'two dots': 'a.b.c',
    };
    for (const [what, token] of Object.entries(refused)) {
      expect([what, (await ask(token)).status]).toEqual([what, 401]);
    }
  });

  verifies('auth.silent', async () => {
    const issuer = await startIssuer();
    const { ask } = await authDoor(jwtOf(issuer));
    const bad = [
      await issuer.token({ exp: 1 }),
      await issuer.token({ iss: 'https://evil.example' }),
      await issuer.token({}, { header: { kid: 'nobody' } }),
      await issuer.token({}, { key: await makeKey('first') }),
      'opaque',
    ];
    const answers = new Set<string>();
    for (const token of bad) answers.add(JSON.stringify(await ask(token)));
    expect([...answers].map((text) => JSON.parse(text))).toEqual([
      {
        status: 401,
        challenge:
          'Bearer error="invalid_token", resource_metadata="https://mcp.example/.well-known/oauth-protected-resource/mcp"',
        retryAfter: null,
        body: JSON.stringify({
          jsonrpc: '2.0',
          id: null,
          error: {
            code: 401,
            message: 'Unauthorized: the access token is not valid for this server; get a new one',
          },
        }),
      },
    ]);
  });

  test('algorithms, audiences and the claim of the principal can be set', async () => {
    const issuer = await startIssuer();
    const rsa = await makeKey('rsa', 'RS256');
    issuer.state.keys.push(rsa);
    const audience = ['api://mcp'];
    const { ask } = await authDoor(
      jwtOf(issuer, { algorithms: ['RS256'], audience, principalClaim: 'oid' }),
    );
    const claims = { aud: 'api://mcp', oid: '42' };
    expect((await ask(await issuer.token(claims, { key: rsa }))).status).toBe(200);
    expect((await ask(await issuer.token(claims))).status).toBe(401);
    expect((await ask(await issuer.token({ oid: '42' }, { key: rsa }))).status).toBe(401);
    // No other claim stands in for the one that was chosen.
    expect((await ask(await issuer.token({ aud: 'api://mcp' }, { key: rsa }))).status).toBe(401);
  });

  verifies('auth.no-kid', async () => {
    const issuer = await startIssuer();
    const { state } = issuer;
    const nameless = { header: { kid: undefined } as never };
    const [second, third, rsa] = [
      await makeKey('second'),
      await makeKey('third'),
      await makeKey('rsa', 'RS256'),
    ];
    state.keys.push(rsa, second, third);
    const { ask } = await authDoor(jwtOf(issuer));
    for (const key of [issuer.first, second, third, rsa]) {
      expect((await ask(await issuer.token({}, { key, ...nameless }))).status).toBe(200);
    }
    const stranger = await makeKey('first');
    for (const [claims, key] of [
      [{}, stranger],
      [{ exp: 1 }, third],
      [{ aud: 'https://other.example/mcp' }, second],
    ] as const) {
      expect((await ask(await issuer.token(claims, { key, ...nameless }))).status).toBe(401);
    }
    // As good as a name that several have.
    third.jwk.kid = 'second';
    const twins = await authDoor(jwtOf(issuer));
    const named = { key: third, header: { kid: 'second' } };
    expect((await twins.ask(await issuer.token({}, named))).status).toBe(200);
    // And with keys that were had before, while the endpoint is down.
    state.behaviour = (_req, res) => res.writeHead(503).end();
    later(11 * MINUTE);
    const { status } = await ask(await issuer.token({}, { key: third, ...nameless }));
    expect(status).toBe(200);
    expect((await ask(await issuer.token({}, { key: stranger, ...nameless }))).status).toBe(401);
  });

  test('no more than 16 keys are tried for a token that names none', async () => {
    const issuer = await startIssuer();
    const last = await makeKey('last');
    const others = await Promise.all(Array.from({ length: 15 }, (_, n) => makeKey(`k${n}`)));
    const nameless = { key: last, header: { kid: undefined } as never };
    issuer.state.keys = [...others, last];
    const few = await authDoor(jwtOf(issuer));
    expect((await few.ask(await issuer.token({}, nameless))).status).toBe(200);
    issuer.state.keys = [issuer.first, ...others, last];
    const many = await authDoor(jwtOf(issuer));
    expect((await many.ask(await issuer.token({}, nameless))).status).toBe(401);
    expect((await many.ask(await issuer.token({}, { key: last }))).status).toBe(200);
  });

  verifies('auth.scopes', async () => {
    const issuer = await startIssuer();
    const auth = { ...jwtOf(issuer), scopes: ['mcp:read', 'mcp:write'] };
    const { ask } = await authDoor(auth);
    for (const claims of [
      { scope: 'other mcp:write mcp:read' },
      { scp: ['mcp:read', 'mcp:write'] },
      { scp: 'mcp:read mcp:write' },
    ]) {
      expect((await ask(await issuer.token(claims))).status).toBe(200);
    }
    for (const claims of [
      {},
      { scope: 'mcp:read' },
      { scope: 'mcp:readmcp:write' },
      { scope: 7 },
    ]) {
      expect(await ask(await issuer.token(claims))).toMatchObject({
        status: 403,
        challenge:
          'Bearer error="insufficient_scope", scope="mcp:read mcp:write", resource_metadata="https://mcp.example/.well-known/oauth-protected-resource/mcp"',
        body: expect.stringContaining('must have the scopes mcp:read mcp:write'),
      });
    }
    // A wrong token is told nothing of scopes being the trouble.
    expect((await ask(await issuer.token({ exp: 1 }))).status).toBe(401);
  });
});

describe('keys of an endpoint', () => {
  verifies('auth.rotation', async () => {
    const issuer = await startIssuer();
    const { ask } = await authDoor(jwtOf(issuer));
    expect((await ask(await issuer.token())).status).toBe(200);
    const second = await makeKey('second');
    issuer.state.keys.push(second);
    const token = () => issuer.token({}, { key: second });
    // The keys were fetched a moment ago: nobody can make us ask again and again.
    expect((await ask(await token())).status).toBe(401);
    expect(issuer.state.fetches).toBe(1);
    later(31_000);
    const tokens = await Promise.all(Array.from({ length: 10 }, token));
    const answers = await Promise.all(tokens.map((each) => ask(each)));
    expect(answers.map(({ status }) => status)).toEqual(Array(10).fill(200));
    expect(issuer.state.fetches).toBe(2);
    const strangers = Array.from({ length: 10 }, (_, index) =>
      issuer.token({}, { header: { kid: `nobody ${index}` } }),
    );
    for (const stranger of strangers) expect((await ask(await stranger)).status).toBe(401);
    expect(issuer.state.fetches).toBe(2);
    // A key that was withdrawn is no longer taken once the keys are older than maxAge.
    issuer.state.keys.shift();
    const old = () => issuer.token();
    expect((await ask(await old())).status).toBe(200);
    later(10 * MINUTE);
    expect((await ask(await old())).status).toBe(401);
    expect(issuer.state.fetches).toBe(3);
  });

  verifies('auth.keys-down', async () => {
    const issuer = await startIssuer();
    issuer.state.behaviour = (_req, res) => res.writeHead(500).end();
    const { ask } = await authDoor(jwtOf(issuer));
    const unavailable = {
      status: 503,
      challenge: null,
      retryAfter: expect.stringMatching(/^[1-9]\d*$/),
      body: expect.stringContaining('cannot be checked at the moment; try again'),
    };
    const token = await issuer.token();
    for (let call = 0; call < 5; call += 1) expect(await ask(token)).toEqual(unavailable);
    // Two calls of two attempts each opened the breaker; the others did not get so far.
    expect(issuer.state.fetches).toBe(4);
    // Nothing of this depends on a token that could not be right anyway.
    expect((await ask('opaque')).status).toBe(401);

    // With keys from before.
    issuer.state.behaviour = issuer.publish;
    const { ask: known } = await authDoor(jwtOf(issuer));
    expect((await known(token)).status).toBe(200);
    issuer.state.behaviour = (_req, res) => res.writeHead(503).end();
    later(11 * MINUTE);
    expect((await known(await issuer.token())).status).toBe(200);
    const unknown = await issuer.token({}, { header: { kid: 'new' } });
    expect(await known(unknown)).toEqual(unavailable);
    expect((await known(await issuer.token({ exp: 1 }))).status).toBe(401);
    later(61 * MINUTE);
    expect(await known(await issuer.token())).toEqual(unavailable);
  });

  test('an endpoint that hangs, is gone, moves away or answers nonsense', async () => {
    const issuer = await startIssuer();
    const token = await issuer.token();
    const elsewhere = await startIssuer();
    const behaviours: Record<string, Issuer['publish']> = {
      hangs: () => {},
      'stops in the middle': (_req, res) => {
        res.writeHead(200).write('{"keys":');
      },
      'is no JSON': (_req, res) => res.end('<html>'),
      'has no keys': (_req, res) => res.end('{}'),
      'has keys that are none': (_req, res) => res.end('{"keys":[7]}'),
      'is far too long': (_req, res) => {
        res.writeHead(200);
        res.end(JSON.stringify({ keys: [issuer.first.jwk], x: 'x'.repeat(300 * 1024) }));
      },
      'is empty': (_req, res) => res.writeHead(204).end(),
      'moves to another origin': (_req, res) =>
        res.writeHead(302, { location: elsewhere.jwksUri }).end(),
    };
    for (const [what, behaviour] of Object.entries(behaviours)) {
      issuer.state.behaviour = behaviour;
      const { ask } = await authDoor(jwtOf(issuer, { timeout: 50 }));
      expect([what, (await ask(token)).status]).toEqual([what, 503]);
    }
    expect(elsewhere.state.fetches).toBe(0);
    const jwksUri = `http://127.0.0.1:${await closedPort()}/jwks.json`;
    const { ask } = await authDoor(jwtOf(issuer, { jwksUri }));
    expect((await ask(token)).status).toBe(503);
  });

  test('its pipeline is seen where the others are', async () => {
    const issuer = await startIssuer();
    const pipelines = new PipelineRegistry();
    onTestFinished(() => pipelines.destroy());
    createAuthenticator(jwtOf(issuer), { pipelines }).close();
    expect(pipelines.get('auth.jwks')?.breaker?.state).toBe('closed');
  });
});

describe('keys of a file', () => {
  verifies('auth.key-file', async () => {
    const issuer = await startIssuer();
    const jwksFile = join(temporaryFolder(), 'jwks.json');
    const second = await makeKey('second');
    const write = (...keys: object[]) => writeFileSync(jwksFile, JSON.stringify({ keys }));
    write(issuer.first.jwk);
    const jwt = { issuer: issuer.issuer, jwksFile, cooldown: 0 };
    const { ask } = await authDoor({ resource: RESOURCE, jwt });
    const rotated = await issuer.token({}, { key: second });
    expect((await ask(await issuer.token())).status).toBe(200);
    expect((await ask(rotated)).status).toBe(401);
    write(issuer.first.jwk, second.jwk);
    expect((await ask(rotated)).status).toBe(200);
    // Half written: what was read before holds.
    writeFileSync(jwksFile, '{"keys": [');
    expect((await ask(await issuer.token({}, { header: { kid: 'third' } }))).status).toBe(401);
    expect((await ask(rotated)).status).toBe(200);
    expect(issuer.state.fetches).toBe(0);
  });

  test('is not read again within the cooldown', async () => {
    const issuer = await startIssuer();
    const jwksFile = join(temporaryFolder(), 'jwks.json');
    const second = await makeKey('second');
    writeFileSync(jwksFile, JSON.stringify({ keys: [issuer.first.jwk] }));
    const { ask } = await authDoor({
      resource: RESOURCE,
      jwt: { issuer: issuer.issuer, jwksFile },
    });
    writeFileSync(jwksFile, JSON.stringify({ keys: [second.jwk] }));
    expect((await ask(await issuer.token({}, { key: second }))).status).toBe(401);
    expect((await ask(await issuer.token())).status).toBe(200);
  });

  test('that cannot be used is refused at the start', () => {
    const folder = temporaryFolder();
    const file = join(folder, 'jwks.json');
    const start = (jwksFile: string) => () =>
      createAuthenticator({
        resource: RESOURCE,
        jwt: { issuer: 'https://login.example', jwksFile },
      });
    expect(start(file)).toThrow(`auth: the key file ${file} cannot be read (ENOENT)`);
    for (const [text, why] of [
      ['{', 'is not valid JSON'],
      ['{"keys": []}', 'must hold a JWK Set: {"keys": [...]} with a key in it'],
      ['[]', 'must hold a JWK Set: {"keys": [...]} with a key in it'],
      ['{"keys": [7]}', 'must hold a JWK Set: each key an object with "kty"'],
    ] as const) {
      writeFileSync(file, text);
      expect(start(file)).toThrow(`auth: the key file ${file} ${why}`);
    }
  });
});
