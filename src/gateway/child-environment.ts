/**
 * @module
 * The environment of an upstream's process: what programs need to run at all, and what was
 * configured. Not ours as a whole: it holds the credentials of everything else.
 */

/** As the MCP SDKs have it, and what says where temporary files go and which language to speak. */
const POSIX: readonly string[] = [
  'HOME',
  'LANG',
  'LANGUAGE',
  'LC_ALL',
  'LC_CTYPE',
  'LOGNAME',
  'PATH',
  'SHELL',
  'TERM',
  'TMPDIR',
  'TZ',
  'USER',
];

const WINDOWS: readonly string[] = [
  'APPDATA',
  'COMSPEC',
  'HOMEDRIVE',
  'HOMEPATH',
  'LOCALAPPDATA',
  'PATH',
  'PATHEXT',
  'PROCESSOR_ARCHITECTURE',
  'PROGRAMFILES',
  'SYSTEMDRIVE',
  'SYSTEMROOT',
  'TEMP',
  'TMP',
  'USERNAME',
  'USERPROFILE',
  'WINDIR',
];

/**
 * The variables that are passed on, under those that were configured.
 *
 * @param ours usually `process.env`
 */
export const childEnvironment = (
  configured: Readonly<Record<string, string>>,
  ours: NodeJS.ProcessEnv,
  platform: NodeJS.Platform = process.platform,
): Record<string, string> => {
  const env: Record<string, string> = {};
  for (const name of platform === 'win32' ? WINDOWS : POSIX) {
    const value = ours[name];
    // A function that bash exported: it would run when a shell starts.
    if (value !== undefined && !value.startsWith('()')) env[name] = value;
  }
  return { ...env, ...configured };
};
