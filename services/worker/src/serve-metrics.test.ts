import { Gauge, Registry } from 'prom-client'
import { expect, onTestFinished, test } from 'vitest'
import { serveMetrics } from './serve-metrics.ts'

test('the page of a worker: metrics, health, and not ready while it drains', async () => {
  const registry = new Registry()
  new Gauge({ name: 'a_gauge', help: 'for this test', registers: [registry] }).set(3)
  let ready = true
  const page = await serveMetrics(registry, 0, () => ready)
  onTestFinished(() => page.close())
  const get = async (path: string, method = 'GET') => {
    const response = await fetch(`http://127.0.0.1:${page.port}${path}`, { method })
    return [response.status, await response.text()] as const
  }
  expect(await get('/healthz')).toEqual([200, 'ok\n'])
  expect(await get('/readyz')).toEqual([200, 'ready\n'])
  expect((await get('/metrics'))[1]).toContain('a_gauge 3')
  expect((await get('/'))[0]).toBe(404)
  expect((await get('/metrics', 'POST'))[0]).toBe(405)
  ready = false
  expect(await get('/readyz')).toEqual([503, 'draining\n'])
  expect((await get('/healthz'))[0]).toBe(200)
  await expect(serveMetrics(registry, page.port, () => ready)).rejects.toMatchObject({
    code: 'failed_precondition',
    detail: { setting: 'worker.metrics_port' },
  })
})
