import { beforeEach, describe, expect, test } from 'vitest'
import type { Archive } from './archive.ts'

const never = new AbortController().signal
const bytesOf = (text: string) => new TextEncoder().encode(text)

async function* chunksOf(...texts: string[]): AsyncGenerator<Uint8Array> {
  for (const text of texts) yield bytesOf(text)
}

/** What every archive must do. An adapter's test is one line: `testArchiveContract('filesystem', () => …)`. */
export function testArchiveContract(name: string, createArchive: () => Promise<Archive>): void {
  describe(`archive: ${name}`, () => {
    let archive: Archive
    beforeEach(async () => {
      archive = await createArchive()
    })
    const textOf = async (name: string) =>
      Buffer.concat(await Array.fromAsync(archive.stream(name, never))).toString()

    test('gives back under a name what was put there last', async () => {
      await archive.put('logs/one.jsonl', bytesOf(''), never)
      expect(await textOf('logs/one.jsonl')).toBe('')
      await archive.put('logs/one.jsonl', chunksOf('a', '', 'b\r\n'), never)
      expect(await textOf('logs/one.jsonl')).toBe('ab\r\n')
      await archive.put('logs/one.jsonl', bytesOf('other'), never)
      expect(await textOf('logs/one.jsonl')).toBe('other')
      const large = new Uint8Array(3 << 20).fill(7)
      await archive.put('logs/large', large, never)
      expect(Buffer.concat(await Array.fromAsync(archive.stream('logs/large', never))).equals(large)).toBe(
        true,
      )
    })

    test('has what was put, and says not_found for what was not', async () => {
      expect(await archive.has('commits/aa/x.pack', never)).toBe(false)
      await expect(textOf('commits/aa/x.pack')).rejects.toMatchObject({ code: 'not_found' })
      await archive.put('commits/aa/x.pack', bytesOf('x'), never)
      expect(await archive.has('commits/aa/x.pack', never)).toBe(true)
    })

    test('lists the names of a folder that begin so, in their order', async () => {
      for (const name of ['logs/b.2', 'logs/b.10', 'logs/a', 'logs/c', 'other/b.3'])
        await archive.put(name, bytesOf(name), never)
      expect(await Array.fromAsync(archive.list('logs/', never))).toEqual([
        'logs/a',
        'logs/b.10',
        'logs/b.2',
        'logs/c',
      ])
      expect(await Array.fromAsync(archive.list('logs/b.', never))).toEqual(['logs/b.10', 'logs/b.2'])
      expect(await Array.fromAsync(archive.list('nothing/', never))).toEqual([])
    })

    test('stores nothing of a source that breaks, or of a caller who gives up', async () => {
      async function* broken(): AsyncGenerator<Uint8Array> {
        yield bytesOf('part')
        throw new Error('the source broke')
      }
      await archive.put('logs/x', bytesOf('before'), never)
      await expect(archive.put('logs/x', broken(), never)).rejects.toThrow('the source broke')
      await expect(archive.put('logs/x', bytesOf('new'), AbortSignal.abort())).rejects.toMatchObject({
        code: 'cancelled',
      })
      expect(await textOf('logs/x')).toBe('before')
    })

    test.each(['', '/x', 'x/', 'a//b', '../x', 'a/../b', '.hidden', `a/${'x'.repeat(256)}`])(
      'refuses the name %j',
      async (name) => {
        await expect(archive.put(name, bytesOf('x'), never)).rejects.toMatchObject({
          code: 'invalid_argument',
        })
      },
    )
  })
}
