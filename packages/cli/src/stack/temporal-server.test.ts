import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdirSync, mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createServer, type AddressInfo } from 'node:net'
import { createInterface } from 'node:readline'
import { isSameProcess } from '@tutti/processes'
import { afterEach, beforeEach, describe, expect, inject, test, vi } from 'vitest'
import { createLocks } from './locks.ts'
import { isTemporalHealthy } from './temporal-health.ts'
import { endTemporalProcess, findLiving, readRecord, startTemporalProcess } from './temporal-process.ts'
import { ensureTemporal, type EnsureTemporal, type TemporalServer } from './temporal-server.ts'

declare module 'vitest' {
  interface ProvidedContext {
    temporalServer: string | null
    temporalMissing: string
  }
}

const binary = inject('temporalServer')
let root: string
let folder: string
const servers: TemporalServer[] = []

beforeEach(() => {
  root = mkdtempSync(join(tmpdir(), 'tutti-temporal-'))
  folder = root
})
afterEach(async () => {
  for (const server of servers.splice(0)) server.release()
  const left = findLiving(folder)
  if (left) await endTemporalProcess(folder, left)
  rmSync(root, { recursive: true, force: true })
})

const env = { ...process.env, TEMPORAL_ADDRESS: '', TEMPORAL_CLI_PATH: binary ?? '' }

const never = () => new AbortController().signal

async function ensure(wished: Pick<EnsureTemporal, 'port' | 'uiPort'> = {}): Promise<TemporalServer> {
  const server = await ensureTemporal({
    ...wished,
    folder,
    locks: createLocks(root),
    retentionMs: 30 * 86_400_000,
    env,
    log: () => {},
    signal: never(),
    killed: never(),
  })
  servers.push(server)
  return server
}

const until = (condition: () => boolean | Promise<boolean>) =>
  vi.waitFor(async () => expect(await condition()).toBe(true), { timeout: 20_000, interval: 50 })

const parent = `
const at = (name) => import(new URL(name, ${JSON.stringify(import.meta.url)}).href)
const { ensureTemporal } = await at('temporal-server.ts')
const { createLocks } = await at('locks.ts')
const [folder] = process.argv.slice(1)
const server = await ensureTemporal({
  folder, locks: createLocks(folder), retentionMs: 86400000, env: process.env, log: () => {}, signal: new AbortController().signal, killed: new AbortController().signal,
})
console.log(server.address)
setInterval(() => {}, 1000)
`

describe.skipIf(binary === null)(
  `our Temporal server${binary === null ? `: ${inject('temporalMissing')}` : ''}`,
  () => {
    test('starts on its database, keeps its ports, and is gone after stop', { timeout: 60_000 }, async () => {
      const server = await ensure()
      expect(await isTemporalHealthy(server.address, server.namespace)).toBe(true)
      expect((await fetch(server.uiAddress!)).status).toBe(200)
      const record = readRecord(folder)!
      await server.stop()
      expect(isSameProcess(record.pid, record.start)).toBe(false)
      expect(await isTemporalHealthy(server.address, server.namespace)).toBe(false)
      const again = await ensure()
      expect(again.address).toBe(server.address)
      await again.stop()
    })

    test('a kill in the middle of its start leaves no process', { timeout: 60_000 }, async () => {
      const killing = new AbortController()
      const starting = startTemporalProcess({
        binary: binary!,
        folder,
        retentionMs: 86_400_000,
        env,
        signal: never(),
        killed: killing.signal,
      })
      starting.catch(() => {})
      await until(() => findLiving(folder) !== undefined)
      const { pid, start } = findLiving(folder)!
      killing.abort()
      await until(() => !isSameProcess(pid, start))
      await expect(starting).rejects.toMatchObject({ code: 'unavailable' })
    })

    test(
      'a port that was asked for is taken from nobody, and a server on another is not adopted',
      { timeout: 60_000 },
      async () => {
        const taken = createServer()
        await new Promise<void>((resolve) => taken.listen(0, '127.0.0.1', resolve))
        const { port } = taken.address() as AddressInfo
        const refused = {
          code: 'failed_precondition',
          message: expect.stringMatching(`Port ${port} is taken.*--ui-port`) as string,
        }
        await expect(ensure({ uiPort: { port, flag: '--ui-port' } })).rejects.toMatchObject(refused)
        expect(findLiving(folder)).toBeUndefined()

        const first = await ensure({ uiPort: { port } })
        expect(first.uiAddress).not.toBe(`http://127.0.0.1:${port}`)
        first.release()
        const left = findLiving(folder)!
        await new Promise((resolve) => taken.close(resolve))
        const second = await ensure({ uiPort: { port, flag: '--ui-port' } })
        expect(second.uiAddress).toBe(`http://127.0.0.1:${port}`)
        expect(isSameProcess(left.pid, left.start)).toBe(false)
        await second.stop()
      },
    )

    test('starts at the same moment share no server', { timeout: 60_000 }, async () => {
      const folders = ['a', 'b', 'c'].map((name) => join(root, name))
      for (const path of folders) mkdirSync(path)
      const [signal, killed] = [never(), never()]
      const started = await Promise.all(
        folders.map((path) =>
          startTemporalProcess({
            binary: binary!,
            folder: path,
            retentionMs: 86_400_000,
            env,
            signal,
            killed,
          }),
        ),
      )
      try {
        expect(new Set(started.flatMap(({ port, uiPort }) => [port, uiPort])).size).toBe(6)
        for (const { pid, start } of started) expect(isSameProcess(pid, start)).toBe(true)
      } finally {
        await Promise.all(started.map((record, index) => endTemporalProcess(folders[index]!, record)))
      }
    })

    test('one that dies comes back on the same address', { timeout: 60_000 }, async () => {
      const server = await ensure()
      const first = readRecord(folder)!
      process.kill(first.pid, 'SIGKILL')
      await until(
        () =>
          (readRecord(folder)?.pid ?? 0) !== first.pid && isTemporalHealthy(server.address, server.namespace),
      )
      await server.stop()
      expect(findLiving(folder)).toBeUndefined()
    })

    test(
      'one that a killed process left is adopted; one that hangs is replaced',
      { timeout: 90_000 },
      async () => {
        const child = spawn(process.execPath, ['--input-type=module', '-e', parent, folder], {
          env,
          stdio: ['ignore', 'pipe', 'inherit'],
        })
        const [address] = (await once(createInterface({ input: child.stdout }), 'line')) as [string]
        child.kill('SIGKILL')
        await once(child, 'exit')
        const left = findLiving(folder)!

        const adopted = await ensure()
        expect(adopted.address).toBe(address)
        expect(readRecord(folder)).toEqual(left)

        adopted.release()
        process.kill(left.pid, 'SIGSTOP')
        const replaced = await ensure()
        expect(readRecord(folder)!.pid).not.toBe(left.pid)
        expect(isSameProcess(left.pid, left.start)).toBe(false)
        expect(await isTemporalHealthy(replaced.address, replaced.namespace)).toBe(true)
        await replaced.stop()
      },
    )

    test(
      'without a record the server of this database is found by its arguments',
      { timeout: 60_000 },
      async (context) => {
        if (process.platform !== 'linux')
          return context.skip('only Linux shows the arguments of processes in /proc')
        const server = await ensure()
        const record = readRecord(folder)!
        rmSync(join(folder, 'server.json'))
        expect(findLiving(folder)).toEqual(record)
        await server.stop()
      },
    )

    test('a program that cannot start says where its log is', async () => {
      const failing = ensureTemporal({
        folder,
        locks: createLocks(root),
        retentionMs: 1,
        env: { ...env, TEMPORAL_CLI_PATH: '/bin/false' },
        log: () => {},
        signal: never(),
        killed: never(),
      })
      await expect(failing).rejects.toMatchObject({
        code: expect.stringMatching(/failed_precondition|unavailable/) as string,
      })
    })
  },
)

test('a named cluster that does not answer is named, and nothing is started instead', async () => {
  const starting = ensureTemporal({
    folder,
    locks: createLocks(root),
    retentionMs: 1,
    env: { TEMPORAL_ADDRESS: '127.0.0.1:1', TEMPORAL_NAMESPACE: 'mine' },
    log: () => {},
    signal: never(),
    killed: never(),
  })
  await expect(starting).rejects.toMatchObject({
    code: 'unavailable',
    detail: { address: '127.0.0.1:1', namespace: 'mine' },
  })
  expect(() => readFileSync(join(folder, 'server.json'))).toThrow('ENOENT')
})
