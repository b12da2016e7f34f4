export { artifacts } from './artifacts.mjs'
export { cacheFolder } from './cache.mjs'
export { describeTemporal } from './describe-temporal.mjs'
export { findTemporalServer, findTemporalTestServer } from './find-temporal.mjs'
