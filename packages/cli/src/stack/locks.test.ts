import { spawn, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { createLocks, isRefused, type HeldLock, type LockKind } from './locks.ts'

let folder: string
const children: ChildProcess[] = []
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'tutti-locks-'))
})
afterEach(async () => {
  for (const child of children.splice(0)) await end(child)
  rmSync(folder, { recursive: true, force: true })
})

async function end(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return
  child.kill('SIGKILL')
  await once(child, 'exit')
}

const program = `
const { createLocks } = await import(${JSON.stringify(new URL('locks.ts', import.meta.url).href)})
const [folder, kind] = process.argv.slice(1)
const lock = createLocks(folder).acquire(kind)
console.log(JSON.stringify('holder' in lock ? { refused: lock.holder } : { role: lock.role }))
setInterval(() => {}, 1000)
`

/** A process that takes a lock and holds it until it is killed. */
async function holder(
  kind: LockKind,
): Promise<{ child: ChildProcess; said: { role?: string; refused?: { pid: number } } }> {
  const child = spawn(process.execPath, ['--input-type=module', '-e', program, folder, kind], {
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  children.push(child)
  const [line] = (await once(createInterface({ input: child.stdout }), 'line')) as [string]
  return { child, said: JSON.parse(line) as { role?: string } }
}

const take = (kind: LockKind): HeldLock => {
  const lock = createLocks(folder).acquire(kind)
  if (isRefused(lock)) throw new Error(`refused by ${lock.holder.role}`)
  return lock
}

describe('who may run on a data folder', () => {
  test('dev excludes everything, and everything excludes dev', () => {
    const dev = take('dev')
    for (const kind of ['dev', 'api', 'worker'] as const) {
      expect(createLocks(folder).acquire(kind)).toEqual({ holder: { role: 'dev', pid: process.pid } })
    }
    dev.release()
    const worker = take('worker')
    expect(createLocks(folder).acquire('dev')).toMatchObject({ holder: { role: 'worker-1' } })
    worker.release()
    take('dev').release()
  })

  test('one api, any number of workers with numbers of their own', () => {
    take('api')
    expect(isRefused(createLocks(folder).acquire('api'))).toBe(true)
    const workers = [take('worker'), take('worker'), take('worker')]
    expect(workers.map(({ role }) => role)).toEqual(['worker-1', 'worker-2', 'worker-3'])
    workers[1]?.release()
    expect(take('worker').role).toBe('worker-2')
  })

  test('the last one to leave knows that it is the last', () => {
    const api = take('api')
    const worker = take('worker')
    expect(api.releaseAndCheckLast()).toBe(false)
    expect(worker.releaseAndCheckLast()).toBe(true)
  })
})

describe('real processes', () => {
  test('a living holder refuses, and is named by its pid', async () => {
    const first = await holder('dev')
    const second = await holder('dev')
    expect(first.said).toEqual({ role: 'dev' })
    expect(second.said).toEqual({ refused: { role: 'dev', pid: first.child.pid } })
  })

  test('the lock of a killed process is taken over', async () => {
    const first = await holder('dev')
    await end(first.child)
    expect((await holder('dev')).said).toEqual({ role: 'dev' })
  })

  test('of many that find a stale lock, one gets it', async () => {
    const stale = await holder('dev')
    await end(stale.child)
    const rivals = await Promise.all(Array.from({ length: 6 }, () => holder('dev')))
    expect(rivals.filter(({ said }) => said.role === 'dev')).toHaveLength(1)
  })

  test('a process that has only the number of the holder does not keep the lock', async () => {
    const { DatabaseSync } = await import('node:sqlite')
    createLocks(folder).holders()
    const database = new DatabaseSync(join(folder, 'locks.sqlite'))
    database.prepare("INSERT INTO locks VALUES ('dev', ?, 'another start')").run(process.pid)
    database.close()
    expect(take('dev').role).toBe('dev')
  })

  test('steps that exclude one another never overlap, and a failed one lets the next in', async () => {
    const { signal } = new AbortController()
    let running = 0
    let most = 0
    const step = async (fails: boolean) => {
      running += 1
      most = Math.max(most, running)
      await new Promise((resolve) => setTimeout(resolve, 5))
      running -= 1
      if (fails) throw new Error('on purpose')
    }
    const results = await Promise.allSettled(
      [false, true, false, true].map((fails) => createLocks(folder).exclusively(() => step(fails), signal)),
    )
    expect(most).toBe(1)
    expect(results.map(({ status }) => status)).toEqual(['fulfilled', 'rejected', 'fulfilled', 'rejected'])
  })
})
