/**
 * @module
 * A real proxy on loopback, and an origin with TLS behind it. The certificate is for `mcp.example`
 * and 127.0.0.1, nobody trusts it, and it is valid until 2126; both halves are public.
 */
import { createServer, type IncomingMessage, request } from 'node:http';
import { type AddressInfo, connect, type Server, type Socket } from 'node:net';
import { createServer as createTlsServer } from 'node:tls';
import { onTestFinished } from 'vitest';

export const cert = `-----BEGIN CERTIFICATE-----
MIIBtDCCAVqgAwIBAgIUQChtkZ3JYhJKA5AmWqXDJLvhQWIwCgYIKoZIzj0EAwIw
FjEUMBIGA1UEAwwLbWNwLmV4YW1wbGUwIBcNMjYxMTMwMDQwMzE5WhgPMjEyNjEx
MDYwNDAzMTlaMBYxFDASBgNVBAMMC21jcC5leGFtcGxlMFkwEwYHKoZIzj0CAQYI
KoZIzj0DAQcDQgAEPJ+mUMDzri1bZ+y2Unt/J/iBCv9762J//kwZzibVHSnE6BnF
VQCgEkog2xknUKfHJEYXQr4LikDa+qbHdXjw/qOBgzCBgDAdBgNVHQ4EFgQU167v
CC4EH3i9tnY1L85BRdNSKQEwHwYDVR0jBBgwFoAU167vCC4EH3i9tnY1L85BRdNS
KQEwDwYDVR0TAQH/BAUwAwEB/zAtBgNVHREEJjAkggttY3AuZXhhbXBsZYIPcHJv
eHkubG9jYWxob3N0hwR/AAABMAoGCCqGSM49BAMCA0gAMEUCIQDutKWvqQSh2hN4
Aui7jys3Ax4AdychaNrDtiVKZ16cWwIgfMErheLWmvaa9zmU8jAmImmZ5NWx7HOy
JAq3VcL0kKE=
-----END CERTIFICATE-----
`;

const key = `-----BEGIN PRIVATE KEY-----
MIGHAgEAMBMGByqGSM49AgEGCCqGSM49AwEHBG0wawIBAQQgcgrxcyLaLLM/b8IX
k+g7povWUL1CwfkmlqnqN9jcCFyhRANCAAQ8n6ZQwPOuLVtn7LZSe38n+IEK/3vr
Yn/+TBnOJtUdKcToGcVVAKASSiDbGSdQp8ckRhdCvguKQNr6psd1ePD+
-----END PRIVATE KEY-----
`;

const listening = async (server: Server): Promise<number> => {
  const sockets = new Set<Socket>();
  server.on('connection', (socket) => {
    sockets.add(socket);
    socket.on('close', () => sockets.delete(socket)).on('error', () => {});
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  onTestFinished(() => {
    for (const socket of sockets) socket.destroy();
    server.close();
  });
  return (server.address() as AddressInfo).port;
};

const join = (one: Socket, other: Socket): void => {
  one.on('error', () => other.destroy()).pipe(other);
  other.on('error', () => one.destroy()).pipe(one);
};

/** TLS in front of a port of this machine. Returns its own port. */
export const tlsInFrontOf = (port: number): Promise<number> =>
  listening(createTlsServer({ cert, key }, (socket) => join(socket, connect(port, '127.0.0.1'))));

/** What a proxy was asked for. */
interface ProxyRequest {
  /** `CONNECT mcp.example:443`, or `POST http://plain.example/mcp`. */
  readonly line: string;
  readonly host: string | undefined;
  readonly authorization: string | undefined;
}

/**
 * A proxy that knows ports of this machine by `name:port`, and nothing else.
 *
 * @param refuse answers CONNECT with this status, where it is one
 */
export const startProxy = async (
  origins: Readonly<Record<string, number>>,
  refuse: () => number | undefined = () => undefined,
) => {
  const requests: ProxyRequest[] = [];
  const see = ({ method, url, headers }: IncomingMessage): void => {
    const { host, 'proxy-authorization': authorization } = headers;
    requests.push({ line: `${method} ${url}`, host, authorization });
  };
  const server = createServer((req, res) => {
    see(req);
    const { host, pathname, search } = new URL(req.url ?? '');
    const port = origins[host.includes(':') ? host : `${host}:80`];
    if (port === undefined) {
      res.writeHead(502).end();
      return;
    }
    const { 'proxy-authorization': _, ...headers } = req.headers;
    const { method } = req;
    const on = request(
      { host: '127.0.0.1', port, method, path: pathname + search, headers },
      (answer) => {
        res.writeHead(answer.statusCode ?? 502, answer.headers);
        answer.pipe(res);
      },
    );
    req.pipe(on.on('error', () => res.destroy()));
    res.on('close', () => on.destroy());
  });
  server.on('connect', (req: IncomingMessage, socket: Socket) => {
    see(req);
    const port = origins[req.url ?? ''];
    const status = refuse() ?? (port === undefined ? 502 : 200);
    socket.on('error', () => {});
    if (status !== 200) {
      socket.end(`HTTP/1.1 ${status} No\r\ncontent-length: 0\r\n\r\n`);
      return;
    }
    const on = connect(port ?? 0, '127.0.0.1', () => {
      socket.write('HTTP/1.1 200 Connection established\r\nvia: 1.1 test\r\n\r\n');
      join(socket, on);
    });
  });
  const port = await listening(server);
  return { port, url: `http://127.0.0.1:${port}`, requests };
};
