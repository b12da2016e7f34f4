import { execFile } from 'node:child_process'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'

/** The checkout. */
export const root = join(import.meta.dirname, '..', '..')

/** Written sources (not generated, not recorded) that git knows or would add, relative to the checkout. */
export async function listSources(): Promise<string[]> {
  const args = [
    'ls-files',
    '-z',
    '--cached',
    '--others',
    '--exclude-standard',
    '--',
    '*.ts',
    '*.mts',
    '*.mjs',
    '*.tsx',
  ]
  const { stdout } = await promisify(execFile)('git', args, { cwd: root, maxBuffer: 1 << 26 })
  const names = stdout
    .split('\0')
    .filter((name) => name !== '' && !/(^|\/)(gen|__fixtures__|histories|tapes)\//.test(name))
  const present = await Promise.all(
    names.map(async (name) => ((await readSource(name)) === undefined ? [] : [name])),
  )
  return [...new Set(present.flat())].toSorted()
}

/** Undefined for a file that git knows but that is deleted in the working tree. */
export function readSource(name: string): Promise<string | undefined> {
  return readFile(join(root, name), 'utf8').catch(() => undefined)
}
