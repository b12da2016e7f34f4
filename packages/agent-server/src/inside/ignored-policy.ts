/** Which of the files that git ignores are kept: none, small ones outside of folders that a setup makes again, or all. */
export type IgnoredFiles = 'none' | 'small' | 'all'

export interface IgnoredPolicy {
  readonly files: IgnoredFiles
  /** Whether `.env` and its like are kept too: they may hold secrets. */
  readonly envFiles: boolean
}

/** Of one ignored file and of all of them, in bytes: settings and local databases, not build products. */
const maxFile = 1n << 20n
const maxAll = 64n << 20n
/** An ignored folder with more files than this is one that some program made, whatever its name is. */
export const maxInFolder = 2000

/** Folders that a setup command or a build makes again. */
const madeAgain = new Set([
  'node_modules',
  '.venv',
  'venv',
  'target',
  'dist',
  'build',
  '__pycache__',
  '.cache',
  '.gradle',
  '.mypy_cache',
  '.next',
  '.nox',
  '.nuxt',
  '.parcel-cache',
  '.pytest_cache',
  '.ruff_cache',
  '.terraform',
  '.tox',
  '.turbo',
])

const nameOf = (key: string): string => key.slice(key.lastIndexOf('/') + 1)

/** Whether an ignored folder is not even looked into. */
export const leavesFolder = (key: string, { files }: IgnoredPolicy): boolean =>
  files === 'none' || (files === 'small' && madeAgain.has(nameOf(key)))

const isEnvFile = (name: string): boolean =>
  name === '.envrc' || (/^\.env(?:\.|$)/.test(name) && !/\.(?:dist|example|sample|template)$/.test(name))

/**
 * Divides ignored files, of path key and size, into those that are kept and those that are not. Those that were kept before come
 * first, so that a new file never drives an older one out.
 */
export function divideIgnored(
  files: ReadonlyMap<string, bigint>,
  wasKept: (key: string) => boolean,
  policy: IgnoredPolicy,
): ReadonlySet<string> {
  const kept = new Set<string>()
  if (policy.files === 'none') return kept
  let left = maxAll
  const keys = [...files.keys()].sort()
  for (const key of [...keys.filter(wasKept), ...keys.filter((key) => !wasKept(key))]) {
    if (isEnvFile(nameOf(key)) && !policy.envFiles) continue
    const size = files.get(key)!
    if (policy.files === 'small') {
      if (size > maxFile || size > left) continue
      left -= size
    }
    kept.add(key)
  }
  return kept
}
