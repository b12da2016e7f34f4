import { startTestApi } from '@tutti/testkit/test-api'
import { expect, onTestFinished, test } from 'vitest'

test('a server that drains is alive and not ready, and answers', async () => {
  const api = await startTestApi()
  onTestFinished(() => api.close())
  const status = async (path: string) => (await fetch(`${api.url}${path}`)).status
  expect(await status('/readyz')).toBe(200)
  api.drain()
  expect(await status('/readyz')).toBe(503)
  expect(await status('/healthz')).toBe(200)
  const answer = await api.post('tutti.v1.SystemService/GetSystemInfo', '{}')
  expect(answer.status).toBe(200)
})
