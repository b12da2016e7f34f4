import { execFileSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { mkdirSync, mkdtempSync, rmSync, symlinkSync, truncateSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { tuttiErrorOf, type BlobContent, type TuttiClient } from '@tutti/client'
import { TuttiError } from '@tutti/core'
import { expect, onTestFinished, test } from 'vitest'
import { changedMeanwhile } from './local-writer.ts'
import type { SyncNote } from './sync-note.ts'
import { openSyncState } from './sync-state.ts'
import { createTestSync } from './test-sync.ts'

test('what becomes something else at the moment when it is sent is told, and holds up nothing else', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'tutti-send-changes-'))
  const state = openSyncState(folder, 'bc')
  onTestFinished(() => {
    state.close()
    rmSync(folder, { recursive: true, force: true })
  })
  const at = (name: string) => join(folder, name)
  const write = (name: string, content: string) => {
    mkdirSync(dirname(at(name)), { recursive: true })
    writeFileSync(at(name), content)
  }
  const large = Buffer.alloc(3 << 20, 'a').toString()
  const becomesFolder = (name: string) => {
    rmSync(at(name))
    mkdirSync(at(name))
    write(`${name}/in`, 'i')
  }
  const becomesLink = (name: string) => {
    rmSync(at(name))
    symlinkSync('stays', at(name))
  }
  const becomesFifo = (name: string) => {
    rmSync(at(name))
    execFileSync('sh', ['-c', 'mkfifo "$0"', at(name)])
  }

  /** What each file becomes between the look at it and its upload. */
  const before: Record<string, (name: string) => void> = {
    gone: (name) => rmSync(at(name)),
    folder: becomesFolder,
    link: becomesLink,
    fifo: becomesFifo,
    'below/file': () => {
      rmSync(at('below'), { recursive: true })
      write('below', 'b')
    },
    'target-file': (name) => {
      rmSync(at(name))
      write(name, 't')
    },
    'target-folder': becomesFolder,
  }
  /** And these when the server asks for their bytes. */
  const within: Record<string, (name: string) => void> = {
    'large-folder': becomesFolder,
    'large-link': becomesLink,
    'large-fifo': becomesFifo,
    'large-shorter': (name) => truncateSync(at(name), 2 << 20),
  }
  for (const name of Object.keys(before)) {
    if (name.startsWith('target')) symlinkSync(name, at(name))
    else write(name, name)
  }
  for (const name of Object.keys(within)) write(name, large + name)
  for (const name of ['stays', 'zz/stays']) write(name, name)

  const sent: string[] = []
  const nameOf = (id: string) =>
    Object.keys(within).find(
      (name) =>
        id ===
        `sha256_${createHash('sha256')
          .update(large + name)
          .digest('hex')}`,
    )
  const server = {
    blobs: {
      async store(id: string, content: BlobContent) {
        const name = nameOf(id)
        if (name) within[name]!(name)
        try {
          const digest = createHash('sha256')
          for await (const chunk of content.bytes()) digest.update(chunk)
          if (`sha256_${digest.digest('hex')}` !== id) throw new TuttiError('invalid_argument', 'other bytes')
        } catch (thrown) {
          throw tuttiErrorOf(thrown)
        }
      },
    },
    agents: {
      async fileSync({ files }: { files: readonly { path: Uint8Array }[] }) {
        sent.push(...files.map(({ path }) => Buffer.from(path).toString()))
        return { offsetKey: '1' }
      },
    },
  } as unknown as TuttiClient
  let isLookedAt = false
  const notes: SyncNote[] = []
  const sync = createTestSync(folder, {
    async client() {
      if (!isLookedAt) for (const [name, becomes] of Object.entries(before)) becomes(name)
      isLookedAt = true
      return server
    },
    state,
    note: (note) => void notes.push(note),
  })

  expect(await sync.settle('all')).toBe('sent')
  expect(sent.sort()).toEqual(['stays', 'zz/stays'])
  const others = [...Object.keys(before), ...Object.keys(within)].sort()
  expect(sync.report(true)).toBe(others.length)
  const left = notes.filter(({ kind }) => kind === 'left')
  expect(left.map(({ key }) => key).sort()).toEqual(others)
  expect(new Set(left.map(({ detail }) => detail))).toEqual(new Set([changedMeanwhile]))

  // The next look finds what they have become.
  await sync.settle('all')
  const became = ['below', 'folder/in', 'large-folder/in', 'large-link', 'large-shorter', 'link']
  expect(sent.sort()).toEqual([...became, 'stays', 'target-file', 'target-folder/in', 'zz/stays'])
})
