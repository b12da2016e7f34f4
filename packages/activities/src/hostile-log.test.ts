import { createHash, randomUUID } from 'node:crypto'
import { existsSync, symlinkSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { encodeRunEvent, type RunEvent } from '@tutti/protocol'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { createTestHost, runInside, type TestHost } from './test-host.ts'

const never = new AbortController().signal
const content = Buffer.from('pwned')
const hash = `sha256_${createHash('sha256').update(content).digest('hex')}` as const
let host: TestHost

beforeEach(async () => {
  host = await createTestHost({ files: { kept: 'k' } })
  await host.deps.blobs.put(content, never)
})
afterEach(() => host.remove())

/** What no worker of ours would write, as if a sandbox had got it past one. */
async function plant(...events: readonly RunEvent[]): Promise<void> {
  const producer = { id: 'planted', epoch: 1, sequence: 1 }
  await host.store.eventLog.append(host.bcId, producer, events.map(encodeRunEvent), never)
}
const created = (path: string): RunEvent => ({
  type: 'file_change',
  incarnation: 1,
  path,
  action: 'created',
  fileType: 'file',
  mode: '100644',
  size: content.length,
  hash,
})
test.each([
  '../x',
  '/etc/x',
  'a/../../x',
  '.git/config',
  '.GIT/hooks/y',
  'a/.git/z',
  './',
  'a//b',
  'p/'.repeat(2500),
])('SEC-01 a recovery refuses a log with the path %j and writes nothing', async (path) => {
  await plant(created(path))
  await expect(host.provision(1)).rejects.toThrow(/unsafe path/)
  expect([existsSync('/x'), existsSync('/etc/x')]).toEqual([false, false])
  expect(await host.deps.sandboxes.list(undefined, never)).toEqual([])
})

/** Where the links below lead: a place of their own, outside of every workspace. */
const outside = join(tmpdir(), `tutti-pwn-${randomUUID()}`)

test('SEC-02 a path below a link: nothing is written to where the link leads, and the recovery says what does not fit', async () => {
  await host.remove()
  host = await createTestHost({
    files: { kept: 'k' },
    prepare: (folder) => symlinkSync(outside, join(folder, 'out')),
  })
  await host.deps.blobs.put(content, never)
  await plant(created('out/pwn'))
  await expect(host.provision(1)).rejects.toThrow(/not what the log recorded.*: out\./)
  expect(existsSync(outside)).toBe(false)
})

test('SEC-02 a link whose path is a folder in the next record: the later one stands, in the workspace', async () => {
  const target = Buffer.from(outside)
  const link = await host.deps.blobs.put(target, never)
  await plant(
    { ...created('out'), fileType: 'symlink', mode: '120000', size: target.length, hash: link } as RunEvent,
    created('out/pwn'),
  )
  const session = await host.provision(1)
  const look = `find out -type d -o -type f | sort; cat out/pwn; ls -d ${outside} 2>/dev/null; true`
  expect(await runInside(session, look)).toBe('out\nout/pwn\npwned')
  expect(existsSync(outside)).toBe(false)
})
