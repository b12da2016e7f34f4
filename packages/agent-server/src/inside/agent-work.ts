import {
  chmodSync,
  copyFileSync,
  lstatSync,
  mkdirSync,
  readlinkSync,
  rmSync,
  symlinkSync,
  type Stats,
} from 'node:fs'
import { join } from 'node:path'
import { pathBytes } from '@tutti/workspace'

/**
 * What an agent had changed before its sandbox was lost, kept aside while a setup command runs once more: a setup command makes files
 * again that the agent has edited or removed since.
 */
export interface AgentWork {
  /** Copies the paths (path keys); those that are not there must not be there afterwards either. */
  keep(paths: Iterable<string>): void
  /** Puts back what was kept, and forgets. */
  putBack(): void
}

export function createAgentWork(workdir: string, home: string): AgentWork {
  const folder = join(home, '.tutti', 'agent-work')
  let kept: string[] = []
  let gone: string[] = []
  const at = (key: string) => Buffer.concat([Buffer.from(`${workdir}/`), pathBytes(key)])
  const aside = (index: number) => Buffer.from(join(folder, String(index)))

  const forget = () => {
    rmSync(folder, { recursive: true, force: true })
    kept = []
    gone = []
  }
  /** The folders on the way to a path, outermost first. */
  const parentsOf = (key: string) => {
    const parts = key.split('/').slice(0, -1)
    return parts.map((_, index) => at(parts.slice(0, index + 1).join('/')))
  }

  return {
    keep(paths) {
      forget()
      for (const key of [...paths].sort()) {
        // What lies behind a link is not the path's.
        const isReached = parentsOf(key).every((parent) => look(parent)?.isDirectory() === true)
        if (!isReached || !look(at(key))) gone.push(key)
        else {
          if (kept.length === 0) mkdirSync(folder, { recursive: true })
          copy(at(key), aside(kept.length))
          kept.push(key)
        }
      }
    },
    putBack() {
      for (const key of gone) {
        if (parentsOf(key).every((parent) => look(parent)?.isDirectory() === true))
          rmSync(at(key), { recursive: true, force: true })
      }
      for (const [index, key] of kept.entries()) {
        for (const parent of parentsOf(key)) {
          const stats = look(parent)
          if (stats?.isDirectory()) continue
          if (stats) rmSync(parent, { force: true })
          mkdirSync(parent)
        }
        // A folder is only that it is there: what is in it has paths of its own, or is the setup's.
        const isFolder = lstatSync(aside(index)).isDirectory()
        if (isFolder && look(at(key))?.isDirectory() === true) continue
        rmSync(at(key), { recursive: true, force: true })
        copy(aside(index), at(key))
      }
      forget()
    },
  }
}

/** Undefined also below what is no folder. */
function look(path: Buffer): Stats | undefined {
  try {
    return lstatSync(path, { throwIfNoEntry: false })
  } catch {
    return undefined
  }
}

function copy(from: Buffer, to: Buffer): void {
  const stats = lstatSync(from)
  if (stats.isSymbolicLink()) symlinkSync(readlinkSync(from, { encoding: 'buffer' }), to)
  else if (stats.isDirectory()) mkdirSync(to)
  else {
    copyFileSync(from, to)
    chmodSync(to, stats.mode & 0o777)
  }
}
