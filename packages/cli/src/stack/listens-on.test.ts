import { createServer, type AddressInfo } from 'node:net'
import { expect, test } from 'vitest'
import { listensOn } from './listens-on.ts'

test.skipIf(process.platform !== 'linux')('tells whose port it is', async () => {
  const server = createServer()
  await new Promise<void>((resolve) => server.listen({ port: 0, host: '127.0.0.1' }, resolve))
  const { port } = server.address() as AddressInfo
  expect(listensOn(process.pid, port)).toBe(true)
  expect(listensOn(process.ppid, port)).toBe(false)
  await new Promise((resolve) => server.close(resolve))
  expect(listensOn(process.pid, port)).toBe(false)
  expect(listensOn(2 ** 30, port)).toBeUndefined()
})
