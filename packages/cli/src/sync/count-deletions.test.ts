import { createHash } from 'node:crypto'
import { mkdtempSync, readdirSync, rmSync, unlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { TuttiClient } from '@tutti/client'
import { createManualClock, type ManualClock } from '@tutti/core'
import { afterEach, beforeEach, expect, test } from 'vitest'
import type { FolderSync } from './folder-sync.ts'
import type { PositionedEvent } from './remote-view.ts'
import { openSyncState, type SyncState } from './sync-state.ts'
import { createTestSync } from './test-sync.ts'

const minute = 60_000
const asked = /files are gone from the folder. With --allow-deletions/

let folder: string
let state: SyncState
let clock: ManualClock
let sync: FolderSync
/** What the log has of the user's deletions. */
let log: PositionedEvent[]
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'tutti-count-deletions-'))
  state = openSyncState(folder, 'bc')
  clock = createManualClock(1e12)
  log = []
  sync = begun()
})
afterEach(() => {
  state.close()
  rmSync(folder, { recursive: true, force: true })
})

/** Takes the user's changes into the log. */
const server = {
  blobs: { async store() {} },
  agents: {
    async fileSync({ files }: { files: readonly { path: Uint8Array; mode: string; hash?: Uint8Array }[] }) {
      for (const { path, mode, hash: bytes } of files) {
        const offsetKey = String(log.length + 1).padStart(8, '0')
        const made = bytes
          ? { action: 'created', mode, hash: `sha256_${Buffer.from(bytes).toString('hex')}` }
          : { action: 'deleted' }
        const event = {
          type: 'file_sync',
          commandId: offsetKey,
          path: Buffer.from(path).toString(),
          ...made,
        }
        log.push({ offsetKey, eventJson: JSON.stringify(event) })
      }
      return { offsetKey: log.at(-1)!.offsetKey }
    },
  },
} as unknown as TuttiClient

/** The next run. */
const begun = (allowDeletions = false): FolderSync =>
  createTestSync(folder, {
    client: () => Promise.resolve(server),
    state,
    note: () => {},
    now: () => clock.now(),
    allowDeletions,
  })

const names = (from: number, to: number) =>
  Array.from({ length: to - from }, (_, index) => `f${String(from + index).padStart(3, '0')}`)
const inLog = () => log.filter(({ eventJson }) => eventJson.includes('"deleted"')).length
const files = () => readdirSync(folder).filter((name) => name !== '.tutti').length

function write(some: readonly string[]): void {
  for (const name of some) writeFileSync(join(folder, name), name)
}

/** Files that the folder and the agent have. */
function agreedOn(some: readonly string[]): void {
  write(some)
  state.change((change) => {
    change.offset('')
    for (const name of some) {
      const hash = `sha256_${createHash('sha256').update(name).digest('hex')}` as const
      change.remote(name, { mode: '100644', hash })
      change.base(name, { mode: '100644', hash })
    }
  })
  sync = begun()
}

async function look(): Promise<void> {
  await sync.settle('all')
  await sync.take(log)
  await sync.settle('told')
}

async function deleted(some: readonly string[]): Promise<void> {
  for (const name of some) unlinkSync(join(folder, name))
  await look()
}

/** Ten at each look. */
async function slowly(some: readonly string[]): Promise<void> {
  for (let start = 0; start < some.length; start += 10) await deleted(some.slice(start, start + 10))
}

test('a slow rm of most of the files is asked about once half of them are gone', async () => {
  agreedOn(names(0, 60))
  await expect(slowly(names(0, 60))).rejects.toThrow(asked)
  expect([inLog(), files()]).toEqual([30, 20])
})

test('it is counted in the same way while the log has not brought back yet what was sent', async () => {
  agreedOn(names(0, 60))
  const looks = async () => {
    for (const name of names(0, 60)) {
      unlinkSync(join(folder, name))
      await sync.settle('all')
    }
  }
  await expect(looks()).rejects.toThrow(asked)
  expect(inLog()).toBe(30)
})

test('the question stays, in each run and however late, until it is answered', async () => {
  agreedOn(names(0, 60))
  await expect(slowly(names(0, 40))).rejects.toThrow('40 of 60')
  clock.advance(60 * minute)
  sync = begun()
  await expect(look()).rejects.toThrow('40 of 60')
  expect(inLog()).toBe(30)

  // Put back: what had gone already is sent anew.
  write(names(0, 40))
  await look()
  await deleted(names(0, 5))
  await expect(slowly(names(5, 40))).rejects.toThrow(asked)

  sync = begun(true)
  await sync.begin()
  await look()
  expect(files()).toBe(25)
  sync = begun()
  await deleted(names(40, 50))
  expect(files()).toBe(15)
  expect(state.agreed()).toBe(15)
})

test('after a rest what is there counts', async () => {
  agreedOn(names(0, 100))
  await slowly(names(0, 40))
  clock.advance(11 * minute)
  await slowly(names(40, 60))
  clock.advance(9 * minute)
  await slowly(names(60, 70))
  await expect(deleted(names(70, 71))).rejects.toThrow('31 of 60')
})

test('what the agent deletes is not counted, nor what the user writes and deletes again', async () => {
  agreedOn(names(0, 100))
  await deleted(names(0, 1))
  state.change((change) => {
    for (const name of names(1, 61)) change.remote(name, undefined)
  })
  await sync.settle('all')
  expect(files()).toBe(39)
  for (const round of [1, 2, 3]) {
    write(names(round * 100, round * 100 + 15))
    await look()
    await deleted(names(round * 100, round * 100 + 15))
  }
  await deleted(names(61, 70))
  expect([state.agreed(), files()]).toEqual([30, 30])
})
