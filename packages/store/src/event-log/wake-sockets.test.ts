import { mkdtemp, readdir, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { LogId } from '@tutti/core'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { openWakeSockets, type WakeSockets } from './wake-sockets.ts'

const opened: WakeSockets[] = []
let folder: string

async function open(woken: (log: LogId) => void, wakeDir = folder): Promise<WakeSockets> {
  const sockets = await openWakeSockets(wakeDir, woken)
  opened.push(sockets)
  return sockets
}

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'tutti-wake-'))
})
afterEach(async () => {
  await Promise.all(opened.splice(0).map((sockets) => sockets.close()))
  await rm(folder, { recursive: true })
})

test('an announcement reaches every other process, whichever was there first, and not the sender', async () => {
  const [first, second] = [Promise.withResolvers<LogId>(), Promise.withResolvers<LogId>()]
  const own: LogId[] = []
  await open(first.resolve)
  const sender = await open((log) => own.push(log))
  await open(second.resolve)
  sender.announce('bc-1')
  expect(await Promise.all([first.promise, second.promise])).toEqual(['bc-1', 'bc-1'])
  expect(own).toEqual([])
})

test('announcements that pile up arrive all', async () => {
  const woken = new Set<LogId>()
  const all = Promise.withResolvers<void>()
  const sent = Array.from({ length: 1000 }, (_, index): LogId => `bc-${index}`)
  await open((log) => woken.add(log).size === 1000 && all.resolve())
  const sender = await open(() => {})
  for (const log of sent) sender.announce(log)
  await all.promise
  expect([...woken]).toEqual(sent)
})

test('a closed one leaves no socket behind, and the others go on', async () => {
  const closed = await open(() => {})
  const woken = Promise.withResolvers<LogId>()
  await open(woken.resolve)
  const sender = await open(() => {})
  await closed.close()
  expect(await readdir(join(folder, 'wake'))).toHaveLength(2)
  sender.announce('bc-2')
  expect(await woken.promise).toBe('bc-2')
})

test('a folder whose path is too long for a socket goes without', async () => {
  const sockets = await open(() => {}, join(folder, 'x'.repeat(120)))
  sockets.announce('bc-3')
  expect(await readdir(join(folder, 'x'.repeat(120), 'wake'))).toEqual([])
})
