import { lstatSync, readdirSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { keptPaths } from './kept-files.ts'

const marked = [
  'HEAD',
  'index',
  'packed-refs',
  'refs',
  'reftable',
  'logs/refs/stash',
  'modules',
  ...keptPaths,
]
/** Of a submodule only HEAD and refs count. */
const passedOver = /^modules\/.*(?:^|\/)(?:objects|logs|hooks|info|index|ORIG_HEAD|FETCH_HEAD)$/

/** What git opens whatever it is asked about the repository. */
const isAlwaysRead = (path: string): boolean => /^(?:HEAD|config|packed-refs|refs\/|reftable\/)/.test(path)

/**
 * Another text whenever something of the repository that is kept has changed; undefined when there is none. No rule for races is
 * needed: git replaces each of these files by another one.
 *
 * @throws the file system's error for what cannot be looked at, and an error for what git would wait for without end.
 */
export function repositoryMark(gitDir: string): string | undefined {
  if (!lstatSync(gitDir, { throwIfNoEntry: false })?.isDirectory()) return undefined
  const lines: string[] = []
  const waiting = [...marked]
  for (let path = waiting.pop(); path !== undefined; path = waiting.pop()) {
    const stats = lstatSync(join(gitDir, path), { bigint: true, throwIfNoEntry: false })
    if (!stats) continue
    if (stats.isDirectory()) {
      const folder = path
      for (const name of readdirSync(join(gitDir, folder))) {
        const inside = `${folder}/${name}`
        if (!name.endsWith('.lock') && !passedOver.test(inside)) waiting.push(inside)
      }
    } else {
      // What a link leads to need not be there.
      const target = statSync(join(gitDir, path), { throwIfNoEntry: false })
      if (target && !target.isFile() && !target.isDirectory() && isAlwaysRead(path))
        throw new Error(`${path} is no file`)
      lines.push(`${path} ${stats.ino} ${stats.size} ${stats.mtimeNs} ${stats.ctimeNs} ${stats.mode}`)
    }
  }
  return lines.sort().join('\n')
}
