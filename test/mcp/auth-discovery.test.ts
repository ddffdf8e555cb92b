import type { IncomingMessage, ServerResponse } from 'node:http';
import { afterEach, describe, expect, onTestFinished, test, vi } from 'vitest';
import { createAuthenticator } from '../../src/mcp/auth.ts';
import { jwksUriIn, metadataUrls } from '../../src/mcp/auth-discovery.ts';
import type { AuthSettings } from '../../src/mcp/auth-settings.ts';
import { startServer } from '../fixtures/server.ts';
import { verifies } from '../fixtures/verifies.ts';
import { initialize, openDoor, post } from './support/door.ts';
import { RESOURCE, startIssuer } from './support/issuer.ts';

const MINUTE = 60_000;
const OAUTH = '/.well-known/oauth-authorization-server';
const OPENID = '/.well-known/openid-configuration';

type Answer = object | ((res: ServerResponse, req: IncomingMessage) => void) | undefined;

/** An issuer whose documents the test decides: what is not named is not there. */
const discoverable = async (path = '') => {
  const base = await startIssuer();
  const issuer = `${base.issuer}${path}`;
  const asked: string[] = [];
  const documents: Record<string, Answer> = {};
  const metadata = (more: object = {}) => ({ issuer, jwks_uri: base.jwksUri, ...more });
  base.state.behaviour = (req, res) => {
    const url = req.url ?? '';
    asked.push(url);
    const answer = url === '/jwks.json' ? base.publish : documents[url];
    if (answer === base.publish) base.publish(req, res);
    else if (typeof answer === 'function') answer(res, req);
    else if (answer === undefined) res.writeHead(404).end('<h1>Not found</h1>');
    else res.end(JSON.stringify(answer));
  };
  const token: typeof base.token = (claims, how) => base.token({ iss: issuer, ...claims }, how);
  return { ...base, issuer, asked, documents, metadata, token };
};

/** A door that knows the issuer alone. */
const doorOf = async (
  issuer: string,
  more: Partial<NonNullable<AuthSettings['jwt']>> = {},
): Promise<{ said: string[]; ask: (token: string) => Promise<number> }> => {
  const said: string[] = [];
  const auth = { resource: RESOURCE, jwt: { issuer, ...more } };
  const authenticator = createAuthenticator(auth, { log: (line) => void said.push(line) });
  onTestFinished(() => authenticator.close());
  const { authenticate, documents } = authenticator;
  const { door } = await openDoor({ authenticate, documents });
  const ask = async (token: string) => {
    const answer = await post(door, initialize(), { authorization: `Bearer ${token}` });
    await answer.text();
    return answer.status;
  };
  return { said, ask };
};

afterEach(() => {
  vi.useRealTimers();
});

/** Moves the calendar; timers stay real. */
const later = (ms: number): void => {
  vi.useFakeTimers({ toFake: ['Date'], now: Date.now() + ms });
};

describe('keys that the metadata of the issuer tell', () => {
  verifies('auth.discovery', async () => {
    const { asked, documents, metadata, ...issuer } = await discoverable();
    documents[OAUTH] = metadata();
    const { ask, said } = await doorOf(issuer.issuer);
    const many = await Promise.all(Array.from({ length: 10 }, () => issuer.token()));
    expect(await Promise.all(many.map(ask))).toEqual(Array(10).fill(200));
    expect(await ask(await issuer.token({ iss: `${issuer.issuer}/` }))).toBe(401);
    expect(asked).toEqual([OAUTH, '/jwks.json']);

    // Old ones are asked for again, with the keys.
    later(11 * MINUTE);
    expect(await ask(await issuer.token())).toBe(200);
    expect(asked.splice(0)).toEqual([OAUTH, '/jwks.json', OAUTH, '/jwks.json']);
    // A new key is looked for where they were.
    later(MINUTE);
    expect(await ask(await issuer.token({}, { header: { kid: 'new' } }))).toBe(401);
    expect(asked.splice(0)).toEqual(['/jwks.json']);

    // The keys have moved before the metadata are old.
    documents['/new.json'] = (res, req) => issuer.publish(req, res);
    documents[OAUTH] = metadata({ jwks_uri: `${issuer.issuer}/new.json` });
    const { publish } = issuer;
    issuer.state.behaviour = (req, res) => {
      asked.push(req.url ?? '');
      if (req.url === '/new.json') publish(req, res);
      else if (req.url === OAUTH) res.end(JSON.stringify(documents[OAUTH]));
      else res.writeHead(503).end();
    };
    later(MINUTE);
    expect(await ask(await issuer.token({}, { header: { kid: 'newer' } }))).toBe(401);
    expect(asked.splice(0)).toEqual(['/jwks.json', OAUTH, '/new.json']);

    // Metadata that cannot be had: the keys are where they were, and are fetched from there.
    documents[OAUTH] = undefined;
    issuer.state.behaviour = (req, res) => {
      asked.push(req.url ?? '');
      if (req.url === '/new.json') publish(req, res);
      else res.writeHead(500).end();
    };
    later(11 * MINUTE);
    expect(await ask(await issuer.token())).toBe(200);
    expect(asked.splice(0)).toEqual([OAUTH, OPENID, '/new.json']);
    // Not again at once.
    later(31_000);
    expect(await ask(await issuer.token({}, { header: { kid: 'newest' } }))).toBe(401);
    expect(asked.splice(0)).toEqual([OAUTH, OPENID, '/new.json']);
    later(10 * 1_000);
    expect(await ask(await issuer.token())).toBe(200);
    expect(asked).toEqual([]);
    expect(said).toEqual([]);
  });

  test('are looked for where the specifications say, in that order', async () => {
    const urls = (issuer: string) =>
      metadataUrls(issuer).map((url) => url.replace('https://a.example', ''));
    expect(urls('https://a.example')).toEqual([OAUTH, OPENID]);
    expect(urls('https://a.example/')).toEqual([OAUTH, OPENID]);
    expect(urls('https://a.example/t/1/')).toEqual([
      `${OAUTH}/t/1`,
      `${OPENID}/t/1`,
      `/t/1${OPENID}`,
    ]);
    const { asked, documents, metadata, issuer, token } = await discoverable('/tenant');
    documents[`${OAUTH}/tenant`] = (res) => res.end('<html>an app that answers to all</html>');
    documents[`/tenant${OPENID}`] = metadata();
    const { ask } = await doorOf(issuer);
    expect(await ask(await token())).toBe(200);
    expect(asked).toEqual([
      `${OAUTH}/tenant`,
      `${OPENID}/tenant`,
      `/tenant${OPENID}`,
      '/jwks.json',
    ]);
  });

  verifies('auth.discovery-exact', async () => {
    const { asked, documents, metadata, issuer, token } = await discoverable();
    const good = await token();
    const refused: Record<string, [Answer, RegExp]> = {
      'of another issuer': [metadata({ issuer: 'https://evil.example' }), /of the issuer "https:/],
      'of the issuer with a slash': [metadata({ issuer: `${issuer}/` }), /letter by letter/],
      'of nobody': [metadata({ issuer: undefined }), /of the issuer nothing/],
      'keys that can be read on their way': [
        metadata({ jwks_uri: 'http://keys.example/jwks.json' }),
        /jwks_uri must be an https URL, and is "http:\/\/keys\.example/,
      ],
      'keys with a password': [metadata({ jwks_uri: 'https://a:b@keys.example' }), /jwks_uri/],
      'without keys': [metadata({ jwks_uri: undefined }), /jwks_uri .* is nothing/],
      'no object': [[metadata()], /no JSON object/],
      'no JSON': [(res) => res.end('<html>'), /not valid JSON/],
      'too long': [metadata({ x: 'x'.repeat(300 * 1024) }), /more than 262144 bytes/],
      elsewhere: [(res) => res.writeHead(302, { location: '/jwks.json' }).end(), /status 302/],
      'not there': [undefined, /there are none at .*oauth-authorization-server and .*openid-/],
      down: [(res) => res.writeHead(502).end(), /502|error/i],
      silent: [() => {}, /time|answer/i],
      'silent in the middle': [(res) => void res.write('{"issuer":'), /time|answer/i],
    };
    for (const [what, [answer, why]] of Object.entries(refused)) {
      documents[OAUTH] = answer;
      const { ask, said } = await doorOf(issuer, { timeout: 60 });
      expect([what, await ask(good)]).toEqual([what, 503]);
      expect([what, said]).toEqual([
        what,
        [expect.stringMatching(/^warning: the keys of http:\S+ cannot be had, to check access/)],
      ]);
      expect(said[0]).toMatch(why);
      // Said once; the breaker opens, and that it did tells nobody why.
      for (let n = 0; n < 4; n += 1) expect(await ask(good)).toBe(503);
      expect(said).toHaveLength(1);
    }
    expect(asked).not.toContain('/jwks.json');
  });

  test('an issuer elsewhere cannot send us to this machine', () => {
    const of = (issuer: string, jwks_uri: string) => () => jwksUriIn({ issuer, jwks_uri }, issuer);
    const [far, here] = ['https://login.example', 'http://127.0.0.1:1'];
    expect(of(far, 'https://keys.example/a?b=c')()).toBe('https://keys.example/a?b=c');
    expect(of(here, `${here}/jwks`)()).toBe(`${here}/jwks`);
    for (const uri of [`${here}/jwks`, 'http://localhost/jwks', 'file:///etc/keys', '']) {
      expect(of(far, uri)).toThrow(/jwks_uri must be an https URL/);
    }
  });

  test('a server that is told the issuer alone says why it cannot check', async () => {
    const { documents, metadata, issuer, token } = await discoverable();
    documents[OAUTH] = metadata({ issuer: 'https://evil.example' });
    const server = await startServer(
      {},
      { http: { auth: { resource: RESOURCE, jwt: { issuer, timeout: 1_000 } } } },
    );
    const ask = async () => {
      const { status } = await post(server, initialize(), {
        authorization: `Bearer ${await token()}`,
      });
      return status;
    };
    expect(await ask()).toBe(503);
    documents[OAUTH] = metadata();
    expect(await ask()).toBe(200);
    await server.stop();
    expect(server.stderr()).toMatch(
      /warning: the keys of http:.* cannot be had, .* those of the issuer "https:\/\/evil\.example"/,
    );
  });
});
