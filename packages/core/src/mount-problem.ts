/** A place of the host that no sandbox may be given. */
interface ForbiddenMount {
  /** Absolute. What contains it is forbidden too. */
  readonly path: string
  /** Whether what lies in it is forbidden as well. */
  readonly below: boolean
  /** Completes "…, because". */
  readonly why: string
}

const kernel = 'it shows the processes, devices and settings of the host'
const services = 'services of the host have their sockets there'
const credentials = 'the credentials of the host lie there'
const ofSandbox = 'the sandbox has one of its own'

/** Every place that must not be mounted; the folders that only a running Tutti knows are given to {@link mountProblem}. */
const forbiddenMounts: readonly ForbiddenMount[] = [
  ...['/proc', '/sys', '/dev'].map((path) => ({ path, below: true, why: kernel })),
  ...['/run', '/var/run'].map((path) => ({ path, below: true, why: services })),
  ...[
    '/etc/shadow',
    '/etc/shadow-',
    '/etc/gshadow',
    '/etc/gshadow-',
    '/etc/sudoers',
    '/etc/sudoers.d',
    '/etc/ssh',
    '/etc/ssl/private',
  ].map((path) => ({ path, below: true, why: credentials })),
  ...['/workspace', '/mirror', '/opt/tutti', '/opt/node'].map((path) => ({
    path,
    below: true,
    why: ofSandbox,
  })),
  // What lies below these is added to what the sandbox has there.
  ...['/tmp', '/var/tmp', '/home/agent'].map((path) => ({ path, below: false, why: ofSandbox })),
]

/**
 * Why a path of the host must not be mounted into a sandbox; undefined when it may be. It looks at the text alone: who can
 * ask the host's disk calls it again for what the path's links lead to.
 *
 * @param own folders of Tutti itself, absolute: neither they nor what contains them or lies in them may be mounted.
 */
export function mountProblem(path: string, own: readonly string[] = []): string | undefined {
  if (!path.startsWith('/')) return 'it is not an absolute path'
  const parts = path.split('/').filter((part) => part !== '')
  if (parts.some((part) => part === '.' || part === '..')) return 'it has a . or .. part'
  if (parts.length === 0) return 'it is the whole disk of the host'
  const plain = `/${parts.join('/')}`
  const ours = own.map((folder) => ({ path: folder, below: true, why: "Tutti's data and its key lie there" }))
  for (const { path: forbidden, below, why } of [...ours, ...forbiddenMounts]) {
    if (plain === forbidden || (below && isBelow(plain, forbidden))) return why
    if (isBelow(forbidden, plain)) return `it contains ${forbidden}, and ${why}`
  }
  return undefined
}

const isBelow = (path: string, folder: string): boolean => path.startsWith(`${folder}/`)
