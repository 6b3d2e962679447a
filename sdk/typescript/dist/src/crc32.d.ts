/** crc32 is CRC-32 as IEEE 802.3 and zip have it, of text whose characters are below 256. */
export declare function crc32(text: string): number;
