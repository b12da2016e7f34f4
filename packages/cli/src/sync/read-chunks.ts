import { constants } from 'node:fs'
import { open } from 'node:fs/promises'

const chunkBytes = 1 << 20

/**
 * The content of a large file, `size` bytes of it at most. Neither follows what has become a link nor waits for what has become a fifo.
 *
 * @throws the file system's error; `EINVAL` for what is no file.
 */
export async function* readChunks(path: Buffer, size = Infinity): AsyncGenerator<Uint8Array> {
  const file = await open(path, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK)
  try {
    if (!(await file.stat()).isFile())
      throw Object.assign(new Error('not a regular file'), { code: 'EINVAL' })
    yield* file.createReadStream({ autoClose: false, end: size - 1, highWaterMark: chunkBytes })
  } finally {
    await file.close()
  }
}
