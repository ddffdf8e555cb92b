import type { RequestListener } from 'node:http';
import { exportJWK, generateKeyPair, type JWTHeaderParameters, SignJWT } from 'jose';
import { http } from '../../fixtures/loopback.ts';

/** A key of the issuer; the public half of it is what it publishes. */
export const makeKey = async (kid: string, alg = 'ES256') => {
  const { privateKey, publicKey } = await generateKeyPair(alg, { extractable: true });
  return { kid, alg, privateKey, publicKey, jwk: { ...(await exportJWK(publicKey)), kid, alg } };
};

export type Key = Awaited<ReturnType<typeof makeKey>>;

export const RESOURCE = 'https://mcp.example/mcp';

/** An authorization server: real keys behind a real JWKS endpoint on loopback. */
export const startIssuer = async () => {
  const first = await makeKey('first');
  const state: { keys: Key[]; fetches: number; behaviour: RequestListener } = {
    keys: [first],
    fetches: 0,
    behaviour: (_req, res) => {
      res.writeHead(200, { 'content-type': 'application/jwk-set+json' });
      res.end(JSON.stringify({ keys: state.keys.map(({ jwk }) => jwk) }));
    },
  };
  const publish = state.behaviour;
  const port = await http((req, res) => {
    state.fetches += 1;
    state.behaviour(req, res);
  });
  const issuer = `http://127.0.0.1:${port}`;
  /** A token that is right, but for what is given. An undefined claim is left out. */
  const token = (
    claims: Readonly<Record<string, unknown>> = {},
    { key = first, header = {} }: { key?: Key; header?: Partial<JWTHeaderParameters> } = {},
  ): Promise<string> => {
    const now = Math.floor(Date.now() / 1_000);
    const usual = { iss: issuer, aud: RESOURCE, sub: 'anna', client_id: 'app', exp: now + 300 };
    const given = Object.entries({ ...usual, iat: now, ...claims });
    const payload = Object.fromEntries(given.filter(([, value]) => value !== undefined));
    return new SignJWT(payload)
      .setProtectedHeader({ alg: key.alg, kid: key.kid, ...header })
      .sign(key.privateKey);
  };
  return { issuer, jwksUri: `${issuer}/jwks.json`, first, state, publish, token };
};

export type Issuer = Awaited<ReturnType<typeof startIssuer>>;
