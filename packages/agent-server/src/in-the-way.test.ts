import { createHash } from 'node:crypto'
import type { BlobId } from '@tutti/core'
import { changePath, pathKey } from '@tutti/workspace'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { createTestBench, never, recordCapture, shell, testPolicy, type TestBench } from './test-sandbox.ts'

describe("what of the agent's is in the way of a file of the user's", { timeout: 60_000 }, () => {
  let bench: TestBench
  beforeAll(async () => {
    bench = await createTestBench()
  })
  afterAll(() => bench.dispose())

  /** After these lines of the agent's, the user has a file with this content at `path`. */
  async function sync(line: string, path: string, content: Buffer) {
    const policy = { limits: { ...testPolicy.limits, diskBytes: 24 << 20 } }
    const { server } = await bench.start({ policy })
    const request = { commit: bench.commit, branch: 'agent/work', changes: [], contentOf: () => [] as never }
    await server.hydrate(request, never)
    await shell(server, line)
    await server.capture(recordCapture().sink, never)
    const hash: BlobId = `sha256_${createHash('sha256').update(content).digest('hex')}`
    const state = {
      path: Buffer.from(path),
      fileType: 'file',
      mode: '100644',
      size: content.length,
      hash,
    } as const
    const unwritten: string[] = []
    const recorded = recordCapture()
    const contentOf = async function* () {
      yield content
    }
    await server.sync(
      { changes: [{ action: 'created', state }], contentOf },
      { ...recorded.sink, unwritten: (refused, code) => void unwritten.push(`${code} ${pathKey(refused)}`) },
      never,
    )
    const changes = recorded.changes.map((change) => `${change.action} ${pathKey(changePath(change))}`)
    return { unwritten, changes, shown: async (what: string) => (await shell(server, what)).stdout }
  }

  test('is there again when the disk has no room for that', async () => {
    const { unwritten, changes, shown } = await sync(
      'echo agents > a; chmod 755 a; head -c 90000000 /dev/zero > rest',
      'a/b',
      Buffer.alloc(1 << 20, 1),
    )
    expect(unwritten).toEqual(['ENOSPC a/b'])
    expect(changes).toEqual([])
    expect(await shown('cat a; ls -A')).toMatch(/^agents\n\.git\nREADME\.md\na\nrest\n$/)
  })

  test('goes as a whole, with what the agent has made read-only', async () => {
    const { unwritten, changes, shown } = await sync(
      'mkdir -p d/shut/sub; echo 1 > d/a; echo 1 > d/shut/sub/b; echo 1 > d/z; chmod 555 d/shut/sub d/shut',
      'd',
      Buffer.from('users\n'),
    )
    expect(unwritten).toEqual([])
    expect(changes).toEqual(['deleted d/a', 'deleted d/shut/sub/b', 'deleted d/z'])
    expect(await shown('cat d; ls -A')).toBe('users\n.git\nREADME.md\nd\n')
  })
})
