// CRC-32 (IEEE 802.3, reflected, polynomial 0xEDB88320) of ASCII text.

const table = new Uint32Array(256).map((_, n) => {
  let c = n;
  for (let bit = 0; bit < 8; bit++) c = c & 1 ? 0xedb88320 ^ (c >>> 1) : c >>> 1;
  return c >>> 0;
});

/** crc32 returns the checksum of text, whose characters are below 256. */
export function crc32(text) {
  let c = 0xffffffff;
  for (let i = 0; i < text.length; i++) c = table[(c ^ text.charCodeAt(i)) & 0xff] ^ (c >>> 8);
  return (c ^ 0xffffffff) >>> 0;
}
