import { describe, expect, test } from 'vitest';
import { verifies } from '../fixtures/verifies.ts';
import { compose, fileOf, service } from '../stack/compose.ts';

const services = Object.entries(compose().services);
const dockerfile = fileOf('Dockerfile');
const manifest = JSON.parse(fileOf('package.json')) as {
  version: string;
  license: string;
  devDependencies: Record<string, string>;
};

describe('the containers', () => {
  verifies('stack.loopback', () => {
    const published = services.flatMap(([name, { ports = [] }]) =>
      ports.map((port) => `${name} ${port}`),
    );
    expect(published).toHaveLength(6);
    expect(published.filter((text) => !/ 127\.0\.0\.1:\d+:\d+$/.test(text))).toEqual([]);
    // No two services ask for the same port of the machine.
    const own = published.map((text) => text.split(':')[1]);
    expect(new Set(own).size).toBe(own.length);
    // Nothing has a password that others could know, because nothing has one.
    expect(JSON.stringify(compose())).not.toMatch(/password/i);
    expect(service('grafana').environment).toMatchObject({
      GF_AUTH_DISABLE_LOGIN_FORM: 'true',
      GF_AUTH_BASIC_ENABLED: 'false',
      GF_SECURITY_DISABLE_INITIAL_ADMIN_CREATION: 'true',
    });
  });

  test('each has limits, comes back, and has no more rights than it needs', () => {
    for (const [name, each] of services) {
      expect(each.mem_limit, name).toMatch(/^\d+m$/);
      expect(each.restart, name).toBe(name === 'volumes' ? 'no' : 'unless-stopped');
      expect(each.cap_drop, name).toEqual(['ALL']);
      expect(each.security_opt, name).toEqual(['no-new-privileges:true']);
    }
  });

  test('what waits for a healthy service waits for one that can say so', () => {
    for (const [name, { depends_on = {} }] of services) {
      for (const [other, { condition }] of Object.entries(depends_on)) {
        const { healthcheck, restart } = service(other);
        const possible =
          healthcheck !== undefined
            ? 'service_healthy'
            : restart === 'no'
              ? 'service_completed_successfully'
              : 'service_started';
        expect(condition, `${name} waits for ${other}`).toBe(possible);
      }
    }
  });

  test('the server can be left out: it alone has a profile, which .env switches on', () => {
    expect(services.filter(([, { profiles }]) => profiles).map(([name]) => name)).toEqual([
      'server',
    ]);
    expect(fileOf('.env')).toContain(`COMPOSE_PROFILES=${service('server').profiles?.join(',')}`);
    for (const [name, { depends_on = {} }] of services) {
      expect(Object.keys(depends_on), name).not.toContain('server');
    }
  });

  verifies('stack.image', () => {
    const stages = [...dockerfile.matchAll(/^FROM (\S+)/gm)].map(([, image]) => image);
    expect(stages).toHaveLength(3);
    // The Node that everything is tested on.
    expect(new Set(stages)).toEqual(new Set([`node:${manifest.devDependencies.node}-alpine`]));
    expect(dockerfile).toMatch(/^RUN npm ci --omit=dev --ignore-scripts/m);
    const last = dockerfile.slice(dockerfile.lastIndexOf('FROM '));
    expect(last).toMatch(/^USER node$/m);
    expect(last).toMatch(/^HEALTHCHECK [\s\S]*?CMD \["node", "-e"/m);
    expect(last).not.toMatch(/^RUN /m);
    expect(last).toContain(`org.opencontainers.image.version="${manifest.version}"`);
    expect(last).toContain(`org.opencontainers.image.licenses="${manifest.license}"`);
    expect(service('server').image).toBe(`mcp-resilience:${manifest.version}`);
    expect(service('server')).toMatchObject({ read_only: true, tmpfs: ['/tmp'], build: '.' });
  });

  test('what the Dockerfile copies is let through, and nothing else', () => {
    const allowed = fileOf('.dockerignore')
      .split('\n')
      .filter((line) => line.startsWith('!'))
      .map((line) => line.slice(1));
    const copied = [...dockerfile.matchAll(/^COPY (?!--from)(.+) \S+$/gm)].flatMap(
      ([, files = '']) => files.split(' '),
    );
    expect(new Set(copied).size).toBeGreaterThan(5);
    expect(new Set(copied)).toEqual(new Set(allowed.filter((name) => name !== 'scripts')));
  });
});
