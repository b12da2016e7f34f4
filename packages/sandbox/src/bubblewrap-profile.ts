import { lstatSync, readdirSync, readlinkSync } from 'node:fs'
import type { SandboxDisk } from './sandbox-disk.ts'

/** Where things are inside; the same in every bubblewrap sandbox. */
export const insidePaths = {
  workspace: '/workspace',
  home: '/home/agent',
  tmp: '/tmp',
  node: '/opt/node/bin/node',
  etc: '/etc',
} as const

/**
 * What programs need of /etc, and nothing that identifies or guards the host: never /etc/shadow, machine ids, private keys.
 * Missing ones are left out.
 */
const etcNames = [
  'alternatives',
  'ca-certificates',
  'ca-certificates.conf',
  'crypto-policies',
  'fonts',
  'ld.so.cache',
  'ld.so.conf',
  'ld.so.conf.d',
  'localtime',
  'magic',
  'mime.types',
  'pki/ca-trust',
  'pki/tls/certs',
  'protocols',
  'services',
  'ssl/certs',
  'ssl/openssl.cnf',
  'timezone',
]
/** Language run-times keep settings here that they do not start without. */
const etcPattern = /^(java-?\d*.*|python3(\.\d+)?|perl|php)$/
/** Needed only by who may reach the network. */
const etcNetworkNames = ['resolv.conf', 'gai.conf']

export interface ProfileRequest {
  /** Absent for the probe. */
  readonly disk?: SandboxDisk
  readonly shareNetwork: boolean
  readonly readOnly: readonly { readonly host: string; readonly inside: string }[]
  readonly cwd: string
  readonly env: Readonly<Record<string, string>>
  /** Folder with the sandbox's own passwd, group, hosts and nsswitch.conf. */
  readonly etcFolder?: string
  readonly disableUserNamespaces: boolean
}

/** Arguments of bwrap, before `--` and the program. They go to it by descriptor: the environment must not stand in any argv. */
export function bubblewrapProfile(request: ProfileRequest): string[] {
  const args = ['--unshare-all', '--unshare-user', '--uid', '1000', '--gid', '1000']
  if (request.shareNetwork) args.push('--share-net')
  if (request.disableUserNamespaces) args.push('--disable-userns')
  args.push('--cap-drop', 'ALL', '--new-session', '--die-with-parent', '--hostname', 'agent', '--clearenv')
  for (const [name, value] of Object.entries(request.env)) args.push('--setenv', name, value)

  args.push('--ro-bind', '/usr', '/usr')
  for (const path of ['/bin', '/sbin', '/lib', '/lib32', '/lib64', '/libx32'])
    args.push(...systemFolder(path))
  args.push('--ro-bind-try', '/nix/store', '/nix/store')
  // Read-only: for a sandbox made by root the kernel's settings below /proc/sys would be writable, capabilities or not, and with
  // them the host (core_pattern runs a program).
  args.push('--proc', '/proc', '--remount-ro', '/proc', '--dev', '/dev')

  const names = [...etcNames, ...etcFolders(), ...(request.shareNetwork ? etcNetworkNames : [])]
  for (const name of names) args.push('--ro-bind-try', `/etc/${name}`, `/etc/${name}`)
  if (request.etcFolder) {
    for (const name of Object.keys(ownEtcFiles)) {
      args.push('--ro-bind', `${request.etcFolder}/${name}`, `/etc/${name}`)
    }
  }
  if (request.disk) {
    args.push('--bind', request.disk.tmp, insidePaths.tmp, '--bind', request.disk.tmp, '/var/tmp')
    args.push('--bind', request.disk.shm, '/dev/shm')
    args.push(
      '--bind',
      request.disk.home,
      insidePaths.home,
      '--bind',
      request.disk.workspace,
      insidePaths.workspace,
    )
  } else {
    args.push('--tmpfs', insidePaths.tmp, '--dir', insidePaths.home, '--dir', insidePaths.workspace)
  }
  for (const { host, inside } of request.readOnly) args.push('--ro-bind', host, inside)
  // The root and /dev are file systems in memory that the sandbox's user owns: without this they could be filled.
  args.push('--remount-ro', '/dev', '--remount-ro', '/', '--chdir', request.cwd)
  return args
}

/** What the sandbox sees as its /etc/passwd and the like. */
export const ownEtcFiles = {
  passwd: 'root:x:0:0:root:/:/usr/sbin/nologin\nagent:x:1000:1000:agent:/home/agent:/bin/sh\n',
  group: 'root:x:0:\nagent:x:1000:\n',
  hosts: '127.0.0.1 localhost agent\n::1 localhost\n',
  'nsswitch.conf': 'passwd: files\ngroup: files\nhosts: files dns\n',
} as const

/** On merged systems these are links into /usr; elsewhere folders of their own. */
function systemFolder(path: string): string[] {
  const stats = lstatSync(path, { throwIfNoEntry: false })
  if (!stats) return []
  return stats.isSymbolicLink() ? ['--symlink', readlinkSync(path), path] : ['--ro-bind', path, path]
}

function etcFolders(): string[] {
  try {
    return readdirSync('/etc').filter((name) => etcPattern.test(name))
  } catch {
    return []
  }
}
