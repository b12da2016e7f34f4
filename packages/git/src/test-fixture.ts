import { execFileSync } from 'node:child_process'
import { mkdtemp, realpath, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Archive } from '@tutti/blob-store'
import type { AgentId } from '@tutti/core'
import { createMirrors } from './mirrors.ts'
import type { TreeChange } from './port.ts'

export const never = new AbortController().signal

/** git as a user would run it, away from this machine's own configuration. */
export function userGit(cwd: string, ...args: string[]): string {
  return execFileSync('git', args, {
    cwd,
    encoding: 'utf8',
    stdio: ['ignore', 'pipe', 'pipe'],
    env: {
      PATH: process.env['PATH'],
      HOME: cwd,
      GIT_CONFIG_NOSYSTEM: '1',
      GIT_AUTHOR_NAME: 'u',
      GIT_AUTHOR_EMAIL: 'u@localhost',
      GIT_COMMITTER_NAME: 'u',
      GIT_COMMITTER_EMAIL: 'u@localhost',
    },
  }).trim()
}

export async function createFixture(archiveIn?: (folder: string) => Archive) {
  const folder = await realpath(await mkdtemp(join(tmpdir(), 'tutti-git-')))
  const source = join(folder, 'source')
  userGit(folder, 'init', '-q', '-b', 'trunk', source)
  const archive = archiveIn?.(folder)
  return {
    folder,
    source,
    mirrors: createMirrors({ root: join(folder, 'mirrors'), ...(archive && { archive }) }),
    commitAll(message = 'change') {
      userGit(source, 'add', '-A')
      userGit(source, 'commit', '-q', '--allow-empty', '-m', message)
      return userGit(source, 'rev-parse', 'HEAD')
    },
    remove: () => rm(folder, { recursive: true, force: true }),
  }
}

export type Fixture = Awaited<ReturnType<typeof createFixture>>

export function put(
  path: string | Uint8Array,
  content: string | Uint8Array,
  mode: '100644' | '100755' | '120000' = '100644',
): TreeChange {
  const bytes = Buffer.from(content as string)
  return {
    path: Buffer.from(path as string),
    mode,
    size: bytes.length,
    content: async function* () {
      yield bytes
    },
  }
}

export const gone = (path: string): TreeChange => ({ path: Buffer.from(path), deleted: true })

export const agent = (index: number): AgentId =>
  `bc-00000000-0000-7000-8000-${index.toString(16).padStart(12, '0')}`
