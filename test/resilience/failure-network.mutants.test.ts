import { describe, expect, test } from 'vitest';
import { classify } from '../../src/resilience/failure.ts';

const errorOf = (code: string, more: object = {}, message = 'it broke') =>
  Object.assign(new Error(message), { code, ...more });
const of = (code: string, more?: object, message?: string) =>
  classify(errorOf(code, more, message));

describe('each code that Node, undici, axios and the MCP SDK give', () => {
  test.each([
    ['ECONNREFUSED', 'CONNECTION_REFUSED', 'not_sent', true],
    ['ECONNRESET', 'CONNECTION_RESET', 'lost', true],
    ['ECONNABORTED', 'CONNECTION_RESET', 'lost', true],
    ['EPIPE', 'CONNECTION_RESET', 'lost', true],
    ['ENOTCONN', 'CONNECTION_RESET', 'lost', true],
    ['ETIMEDOUT', 'UPSTREAM_TIMEOUT', 'lost', true],
    ['EHOSTUNREACH', 'HOST_UNREACHABLE', 'not_sent', true],
    ['EHOSTDOWN', 'HOST_UNREACHABLE', 'not_sent', true],
    ['ENETUNREACH', 'HOST_UNREACHABLE', 'not_sent', true],
    ['ENETDOWN', 'HOST_UNREACHABLE', 'not_sent', true],
    ['EADDRNOTAVAIL', 'NETWORK_ERROR', 'not_sent', true],
    ['ENOTFOUND', 'DNS_FAILURE', 'not_sent', true],
    ['EPROTO', 'TLS_FAILURE', 'not_sent', false],
    ['ERR_STREAM_PREMATURE_CLOSE', 'CONNECTION_RESET', 'lost', true],
    ['ERR_STREAM_DESTROYED', 'CONNECTION_RESET', 'lost', true],
    ['ERR_STREAM_WRITE_AFTER_END', 'CONNECTION_RESET', 'lost', true],
    ['ERR_SOCKET_CLOSED', 'CONNECTION_RESET', 'lost', true],
    ['ERR_SOCKET_CLOSED_BEFORE_CONNECTION', 'CONNECTION_RESET', 'not_sent', true],
    ['ERR_SOCKET_CONNECTION_TIMEOUT', 'CONNECT_TIMEOUT', 'not_sent', true],
    ['ERR_TLS_HANDSHAKE_TIMEOUT', 'CONNECT_TIMEOUT', 'not_sent', true],
    ['ERR_HTTP_REQUEST_TIMEOUT', 'UPSTREAM_TIMEOUT', 'lost', true],
    ['ERR_HTTP2_GOAWAY_SESSION', 'CONNECTION_RESET', 'lost', true],
    ['ERR_HTTP2_SESSION_ERROR', 'CONNECTION_RESET', 'lost', true],
    ['ERR_HTTP2_STREAM_ERROR', 'CONNECTION_RESET', 'lost', true],
    ['ERR_HTTP2_STREAM_CANCEL', 'CONNECTION_RESET', 'lost', true],
    ['ERR_ENCODING_INVALID_ENCODED_DATA', 'UPSTREAM_INVALID_RESPONSE', 'answered', true],
    ['Z_DATA_ERROR', 'UPSTREAM_INVALID_RESPONSE', 'answered', true],
    ['Z_BUF_ERROR', 'UPSTREAM_INVALID_RESPONSE', 'answered', true],
    ['UND_ERR_CONNECT_TIMEOUT', 'CONNECT_TIMEOUT', 'not_sent', true],
    ['UND_ERR_HEADERS_TIMEOUT', 'UPSTREAM_TIMEOUT', 'lost', true],
    ['UND_ERR_BODY_TIMEOUT', 'UPSTREAM_TIMEOUT', 'lost', true],
    ['UND_ERR_SOCKET', 'CONNECTION_RESET', 'lost', true],
    ['UND_ERR_CLOSED', 'NETWORK_ERROR', 'not_sent', true],
    ['UND_ERR_PRX_TLS', 'TLS_FAILURE', 'not_sent', false],
    ['UND_ERR_RESPONSE', 'UPSTREAM_ERROR', 'answered', true],
    ['UND_ERR_RESPONSE_STATUS_CODE', 'UPSTREAM_ERROR', 'answered', true],
    ['UND_ERR_HEADERS_OVERFLOW', 'UPSTREAM_INVALID_RESPONSE', 'answered', true],
    ['UND_ERR_RES_CONTENT_LENGTH_MISMATCH', 'UPSTREAM_INVALID_RESPONSE', 'answered', true],
    ['UND_ERR_RES_EXCEEDED_MAX_SIZE', 'UPSTREAM_INVALID_RESPONSE', 'answered', false],
    ['UND_ERR_REQ_CONTENT_LENGTH_MISMATCH', 'INTERNAL_ERROR', 'not_sent', false],
    ['UND_ERR_INVALID_ARG', 'INTERNAL_ERROR', 'not_sent', false],
    ['UND_ERR_INVALID_RETURN_VALUE', 'INTERNAL_ERROR', 'not_sent', false],
    ['UND_ERR_NOT_SUPPORTED', 'INTERNAL_ERROR', 'not_sent', false],
    ['ERR_NETWORK', 'NETWORK_ERROR', 'lost', true],
    ['NOT_CONNECTED', 'UPSTREAM_UNAVAILABLE', 'not_sent', true],
    ['NOT_INITIALIZED', 'UPSTREAM_UNAVAILABLE', 'not_sent', true],
    ['CONNECTION_CLOSED', 'CONNECTION_RESET', 'lost', true],
    ['REQUEST_TIMEOUT', 'UPSTREAM_TIMEOUT', 'lost', true],
    ['SEND_FAILED', 'NETWORK_ERROR', 'lost', true],
    ['INVALID_RESULT', 'UPSTREAM_INVALID_RESPONSE', 'answered', true],
    ['ENOENT', 'NOT_FOUND', 'answered', false],
    ['ENOTDIR', 'NOT_FOUND', 'answered', false],
    ['EACCES', 'AUTH_FAILED', 'answered', false],
    ['EPERM', 'AUTH_FAILED', 'answered', false],
    ['EEXIST', 'REQUEST_REJECTED', 'answered', false],
    ['EISDIR', 'REQUEST_REJECTED', 'answered', false],
    ['ENOTEMPTY', 'REQUEST_REJECTED', 'answered', false],
    ['ENAMETOOLONG', 'REQUEST_REJECTED', 'answered', false],
    ['ELOOP', 'REQUEST_REJECTED', 'answered', false],
    ['EFBIG', 'REQUEST_REJECTED', 'answered', false],
    ['EBUSY', 'UPSTREAM_UNAVAILABLE', 'refused', true],
    ['EAGAIN', 'UPSTREAM_UNAVAILABLE', 'refused', true],
    ['EMFILE', 'UPSTREAM_UNAVAILABLE', 'refused', true],
    ['ENFILE', 'UPSTREAM_UNAVAILABLE', 'refused', true],
    ['ENOBUFS', 'UPSTREAM_UNAVAILABLE', 'refused', true],
    ['EIO', 'UPSTREAM_ERROR', 'answered', true],
    ['ENOSPC', 'UPSTREAM_ERROR', 'answered', false],
    ['EDQUOT', 'UPSTREAM_ERROR', 'answered', false],
    ['EROFS', 'UPSTREAM_ERROR', 'answered', false],
    ['EAI_FAIL', 'DNS_FAILURE', 'not_sent', true],
    ['ERR_SSL_DECRYPTION_FAILED_OR_BAD_RECORD_MAC', 'CONNECTION_RESET', 'lost', true],
    ['ERR_SSL_WRONG_VERSION_NUMBER', 'TLS_FAILURE', 'not_sent', false],
    ['ERR_TLS_CERT_ALTNAME_INVALID', 'TLS_FAILURE', 'not_sent', false],
    ['CERT_HAS_EXPIRED', 'TLS_FAILURE', 'not_sent', false],
    ['DEPTH_ZERO_SELF_SIGNED_CERT', 'TLS_FAILURE', 'not_sent', false],
    ['SELF_SIGNED_CERT_IN_CHAIN', 'TLS_FAILURE', 'not_sent', false],
    ['UNABLE_TO_VERIFY_LEAF_SIGNATURE', 'TLS_FAILURE', 'not_sent', false],
    ['UNABLE_TO_GET_ISSUER_CERT_LOCALLY', 'TLS_FAILURE', 'not_sent', false],
    ['UNABLE_TO_GET_CRL', 'TLS_FAILURE', 'not_sent', false],
    ['HOSTNAME_MISMATCH', 'TLS_FAILURE', 'not_sent', false],
    ['INVALID_CA', 'TLS_FAILURE', 'not_sent', false],
    ['INVALID_PURPOSE', 'TLS_FAILURE', 'not_sent', false],
    ['HPE_HEADER_OVERFLOW', 'UPSTREAM_INVALID_RESPONSE', 'answered', true],
    ['UND_ERR_DESTROYED', 'NETWORK_ERROR', 'lost', true],
  ])('%s', (code, expected, delivery, retryable) => {
    expect(of(code)).toMatchObject({
      code: expected,
      delivery,
      retryable,
      severity: retryable ? 'transient' : 'permanent',
    });
  });

  test('is one only when it is written like one', () => {
    for (const code of ['econnreset', 'XECONNRESET', ' ECONNRESET', 'ECONNRESET ', 'E', '9EIO']) {
      expect(of(code).code, code).toBe('UNKNOWN_ERROR');
    }
  });
});

describe('the phase of the call', () => {
  test('while the host is looked up, whatever the code', () => {
    for (const syscall of ['getaddrinfo', 'getnameinfo', 'queryA', 'getHostByAddr']) {
      expect(of('ETIMEDOUT', { syscall }).code, syscall).toBe('DNS_FAILURE');
    }
    expect(of('ETIMEDOUT', { syscall: 'my getaddrinfo' }).code).toBe('UPSTREAM_TIMEOUT');
  });

  test('while a program is started', () => {
    for (const code of ['ENOENT', 'ENOTDIR', 'EACCES', 'EPERM']) {
      expect(of(code, { syscall: 'spawn nothing' }), code).toMatchObject({
        code: 'UPSTREAM_UNAVAILABLE',
        delivery: 'not_sent',
        severity: 'permanent',
        retryable: false,
      });
    }
    expect(of('EAGAIN', { syscall: 'spawn node' })).toMatchObject({
      code: 'UPSTREAM_UNAVAILABLE',
      delivery: 'not_sent',
      retryable: true,
    });
  });

  test('while a connection is made', () => {
    const syscall = 'connect';
    expect(of('ETIMEDOUT', { syscall }).code).toBe('CONNECT_TIMEOUT');
    expect(of('ENOENT', { syscall })).toMatchObject({
      code: 'CONNECTION_REFUSED',
      retryable: true,
    });
    for (const code of ['EACCES', 'EPERM']) {
      expect(of(code, { syscall })).toMatchObject({ code: 'CONNECTION_REFUSED', retryable: false });
    }
    expect(of('ECONNRESET', { syscall })).toMatchObject({
      code: 'CONNECTION_RESET',
      delivery: 'not_sent',
    });
    expect(of('EACCES', { syscall: 'open' }).code).toBe('AUTH_FAILED');
  });

  test('while data is on its way', () => {
    for (const syscall of ['read', 'write']) {
      expect(of('EHOSTUNREACH', { syscall }).delivery).toBe('lost');
      // What was refused or answered stays so.
      expect(of('EAGAIN', { syscall }).delivery).toBe('refused');
      expect(of('EIO', { syscall }).delivery).toBe('answered');
    }
    expect(of('EHOSTUNREACH', { syscall: 'sendto' }).delivery).toBe('not_sent');
  });

  test('as the message tells it', () => {
    expect(of('ECONNABORTED', {}, 'timeout of 10 ms exceeded').code).toBe('UPSTREAM_TIMEOUT');
    expect(of('EIO', {}, 'timeout of 10 ms exceeded').code).toBe('UPSTREAM_ERROR');
    const tls = 'Client network socket disconnected before secure TLS connection was established';
    expect(of('ECONNRESET', {}, tls)).toMatchObject({
      code: 'CONNECTION_RESET',
      delivery: 'not_sent',
    });
    expect(of('EPIPE', {}, tls).delivery).toBe('lost');
    const refused = 'Stream closed with error code NGHTTP2_REFUSED_STREAM';
    expect(of('ERR_HTTP2_STREAM_ERROR', {}, refused)).toMatchObject({
      code: 'CONNECTION_RESET',
      delivery: 'refused',
    });
    expect(of('ERR_HTTP2_SESSION_ERROR', {}, refused).delivery).toBe('lost');
  });
});

describe('what it says', () => {
  const peer = { address: '10.0.0.1', port: 443 };
  test.each([
    ['ECONNREFUSED', peer, 'The connection to 10.0.0.1:443 was refused (ECONNREFUSED).'],
    ['ECONNREFUSED', {}, 'The connection was refused (ECONNREFUSED).'],
    [
      'ECONNRESET',
      peer,
      'The connection to 10.0.0.1:443 was lost before the answer was complete (ECONNRESET).',
    ],
    [
      'ERR_SOCKET_CLOSED_BEFORE_CONNECTION',
      {},
      'The connection was lost before the request was sent (ERR_SOCKET_CLOSED_BEFORE_CONNECTION).',
    ],
    [
      'UND_ERR_CONNECT_TIMEOUT',
      peer,
      'No connection to 10.0.0.1:443 could be made in time (UND_ERR_CONNECT_TIMEOUT).',
    ],
    [
      'UND_ERR_CONNECT_TIMEOUT',
      {},
      'No connection could be made in time (UND_ERR_CONNECT_TIMEOUT).',
    ],
    [
      'ENOTFOUND',
      { hostname: 'no.example' },
      'The host name no.example could not be resolved (ENOTFOUND).',
    ],
    ['ENOTFOUND', {}, 'The host name could not be resolved (ENOTFOUND).'],
    ['EHOSTUNREACH', peer, 'There is no route to 10.0.0.1:443 (EHOSTUNREACH).'],
    ['EHOSTUNREACH', {}, 'There is no route (EHOSTUNREACH).'],
    ['ETIMEDOUT', peer, 'The upstream 10.0.0.1:443 did not answer in time (ETIMEDOUT).'],
    [
      'REQUEST_TIMEOUT',
      { timeout: 50 },
      'The upstream did not answer in time (50 ms) (REQUEST_TIMEOUT).',
    ],
    [
      'ERR_SSL_WRONG_VERSION_NUMBER',
      peer,
      'No secure connection to 10.0.0.1:443 could be made (ERR_SSL_WRONG_VERSION_NUMBER).',
    ],
    ['ERR_SSL_SOMETHING', {}, 'No secure connection could be made (ERR_SSL_SOMETHING).'],
    [
      'CERT_HAS_EXPIRED',
      peer,
      'No secure connection to 10.0.0.1:443 could be made (CERT_HAS_EXPIRED): it broke.',
    ],
    ['CERT_HAS_EXPIRED', {}, 'No secure connection could be made (CERT_HAS_EXPIRED): it broke.'],
    [
      'HPE_INVALID_CONSTANT',
      {},
      "The upstream's answer could not be read (HPE_INVALID_CONSTANT): it broke.",
    ],
    ['UND_ERR_INVALID_ARG', {}, 'The tool has a defect: it broke.'],
    ['EIO', {}, 'The call failed (EIO): it broke.'],
  ])('of %s', (code, more, message) => {
    expect(of(code, more).message).toBe(message);
  });

  test('the peer is found where Node and undici put it', () => {
    const shown = (more: object) => of('ECONNREFUSED', more).message;
    expect(shown({ host: 'h', port: 1 })).toContain(' to h:1 ');
    expect(shown({ socket: { remoteAddress: '10.0.0.2', remotePort: 80 } })).toContain(
      ' to 10.0.0.2:80 ',
    );
    expect(shown({ address: '::1', port: 1 })).toContain(' to [::1]:1 ');
    expect(shown({ address: '[::1]', port: 1 })).toContain(' to [::1]:1 ');
    expect(shown({ address: 'h' })).toContain(' to h was');
    expect(shown({ address: 'h', port: 'x' })).toContain(' to h was');
    expect(shown({ address: 'not a host', port: 1 })).toContain('connection was refused');
    expect(shown({ address: 'not a host', hostname: 'h2', port: 1 })).toContain(' to h2:1 ');
    expect(shown({ address: 'a'.repeat(256), port: 1 })).toContain('connection was refused');
    expect(shown({ address: 'a/b', port: 1 })).toContain('connection was refused');
  });

  test('undici’s parser of HTTP/1 gives a name and no code', () => {
    const error = Object.assign(new Error('Response does not match'), { name: 'HTTPParserError' });
    expect(classify(error)).toMatchObject({
      code: 'UPSTREAM_INVALID_RESPONSE',
      message: "The upstream's answer could not be read: Response does not match.",
      cause: error,
    });
  });

  test('and keeps what was thrown', () => {
    const error = errorOf('EIO');
    expect(classify(error).cause).toBe(error);
  });
});
